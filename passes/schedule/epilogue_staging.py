"""Stages the result in swizzled shared memory, from which TMA stores it.

    store %acc, %c[%i, %j]   →   %map = tensor_map %c      %staging = pipe.create : 2 buffers
                                 staged_store %acc, %map, %staging[%i, %j]

The threads write the tile of C to shared memory in pieces, and TMA stores each piece. A piece is
one swizzle span wide: 128 bytes of a row, if they fit. Where warpgroups hold the sums, its rows may
also be any odd number of units of 16 bytes, as 56 columns of a tile of 168 are: without a swizzle,
eight such rows begin in eight different groups of banks. One piece is stored while the next is
computed, so a few kilobytes of shared memory suffice for any tile.

With mma.sync, if TMA cannot store the result, all threads store the pieces to the view, 16 bytes at
a time:

    store %acc, %c[%i, %j]   →   %staging = pipe.create : as many buffers as pieces
                                 staged_store %acc, %c, %staging[%i, %j]

If A and B are exchanged (`tiling{swap=true}`), a piece is a number of columns of the tile:
stmatrix transposes them, and TMA stores one swizzle span of the rows at a time.

On request, TMA also loads the epilogue's other operands of the size of C, and threads read its
vectors before the main loop (`staged_operands`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects import legality, store_legality
from ...dialects.layout import TileLayout, piece_layout, widest_swizzle
from ...dialects.mlir import ir
from ...dialects.pipe import CreateOp, RingType
from ...dialects.ragged_maps import part_map, ragged_map
from ...dialects.record import record
from ...dialects.sm.threads import TEAM, WARPGROUP
from ...dialects.store_legality import odd_pieces
from ...dialects.target import Target
from ...dialects.tile import (
    WRITES,
    ElementOp,
    GatheredStoreOp,
    KernelOp,
    PairMmaOp,
    ReducedStoreOp,
    StagedStoreOp,
    StoreOp,
)
from ...dialects.tile.ahead import VECTOR_AXES
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile_types import SmemType, element_bytes
from ...dialects.transposed_pieces import transposed_columns, transposed_piece
from ...dialects.verify import can_write_matrices, tile_of_c
from ..base import (
    PassLog,
    auto_option,
    many,
    one_of,
    option,
    parse_count,
    parse_positive,
    refused,
    require,
    target_of,
    the_kernel,
    walk,
)
from ..batches import drop_unused, map_of_view, step_bytes, transposed_of
from ..groups import rows_of_group
from ..outputs import outputs_of, stored_by_threads, stored_together
from ..rings import used_shared_bytes
from ..tensor_maps import map_type, piece_refusal
from .stage_quantized import piece_of, refusal, say_refused, stage_quantized
from .staged_operands import holds_sums, load_ahead, load_vectors, read_ahead

TMA_BUFFERS = 2
VECTORS = ("threads", "ahead", "registers")
BUFFER_BYTES_MAX = 64 * 1024  # two CTAs of a multiprocessor can have as much


@record
class EpilogueStaging:
    """Stores by threads → pieces through swizzled shared memory, stored by TMA or by threads.

    `columns` is the width of a piece; auto is the widest up to 128 bytes. `buffers` is the
    number of pieces in flight; auto is 2 for TMA. `write` says how threads write a piece: as
    `rows`, or as `matrices` by stmatrix; auto is stmatrix for 16-bit elements, on chips that have
    it.

    The pieces of all outputs have the same columns and are stored together, unless an output has
    wider elements and its piece would exceed a swizzle span: then it has narrower pieces of its
    own. If A and B are exchanged, `columns` is a multiple of 8 that divides the columns of the
    tile, and with tensor memory a power of two; auto is the widest up to 64. With block scales a
    piece holds packed elements, and threads store the scales.

    `ahead` is the number of pieces of each other operand of the size of C that TMA loads in
    advance, the first of them during the main loop of their tile. With 0, or with a remark if TMA
    cannot address the rows of the operand, threads read it from global memory. Outputs that are
    stored together share its pieces. If an output with pieces of its own reads the operand too,
    threads read it.

    `vectors` says how operands with one element per column, per row or for all of C are read. With
    `threads` they are read from global memory while a piece is stored, which waits for them. With
    `ahead` TMA loads those with an element per column during the main loop, and the threads that
    hold the accumulator read the others into registers before it. With `registers` these threads
    read those with an element per column into registers, too.

    `by` says which threads write and store a piece together: the `team` of all that hold the
    accumulator, or each `warpgroup` for its own rows. Warpgroups then do not wait for each other:
    one may store while the other still multiplies, as long as operands of the next tile arrive.
    This needs two warpgroups that hold a tile, each of which gets the operands of the epilogue for
    itself: `vectors=ahead` loads them once per warpgroup, and `ahead` must be 0.

    If TMA cannot address the rows of C, threads store C directly, and a remark says so. With
    mma.sync, threads store the pieces: they fill all buffers, synchronise, and store them. auto is
    then all pieces of a tile, up to 64 KiB. If a CTA computes a single tile, `plan-memory` puts
    these buffers where the operands were.
    """

    name: ClassVar[str] = "epilogue-staging"
    columns: int | None = auto_option(parse_positive, "a number of columns")
    buffers: int | None = auto_option(parse_positive, "a number of pieces under way at once")
    write: str = option("auto", one_of("auto", *WRITES), "auto, rows or matrices")
    vectors: str = option("threads", one_of(*VECTORS), "threads, ahead or registers")
    ahead: int = option(0, parse_count, "0 or a number of pieces on their way at once")
    by: str = option(TEAM, one_of(TEAM, WARPGROUP), "team or warpgroup")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        broken = legality.one_program(target_of(module))
        require(kernel, broken, f"drop {self.name}", f"{self.name}: ")
        if walk(kernel, ReducedStoreOp | GatheredStoreOp):
            log.remark(kernel, "epilogue-staging: c is stored by threads, which sum a split K")
            log.did("0 stores staged")
            return
        if not walk(kernel, StoreOp | StoreQuantizedOp):
            raise refused(kernel, "epilogue-staging: stores are staged already; run it once")
        self._check_reads(kernel)
        _check_pairs(kernel)
        staged = sum(
            self._stage(kernel, store, target_of(module), log) for store in walk(kernel, StoreOp)
        )
        for together in stored_together(walk(kernel, StagedStoreOp)):
            self._bring_operands(kernel, together, target_of(module), log)
        for store in walk(kernel, StoreQuantizedOp):
            staged += self._stage_quantized(kernel, store, target_of(module), log)
        drop_unused(kernel)
        log.did(f"{many(staged, 'store')} staged{_in_buffers(kernel)}")

    def _check_reads(self, kernel: KernelOp) -> None:
        """Refuse options that no store of the kernel has a use for, as those about operands that
        none reads."""
        usual = {"ahead": 0, "vectors": VECTORS[0], "by": TEAM, "write": "auto"}
        asked = [name for name, value in usual.items() if getattr(self, name) != value]
        for store in walk(kernel, StoreQuantizedOp) if asked else ():
            rule = f"epilogue-staging: {asked[0]} is for a C without block scales"
            raise refused(store, f"{rule}, got {getattr(self, asked[0])}; leave it out")
        axes = {
            each.axes.value for store in walk(kernel, StoreOp) for each in walk(store, ElementOp)
        }
        read = {"ahead": "mn" in axes, "vectors": bool(axes - {"mn"})}
        for name in (each for each in asked if not read.get(each, True)):
            what = (
                "as large as C" if name == "ahead" else "with an element a column, a row or for all"
            )
            rule = f"epilogue-staging: {name} is for operands {what}"
            raise refused(kernel, f"{rule}, got an epilogue without one; leave {name} out")

    def _stage(self, kernel: KernelOp, store: StoreOp, target: Target, log: PassLog) -> bool:
        """Stage a store by pieces, which threads store where TMA can't; whether either can."""
        transposed = transposed_of(store.view) is not None
        piece = self._transposed_piece(store, target) if transposed else None
        layout = piece or self._piece(kernel, store, target)
        reason = self._why_not_transposed(store, target) if transposed else None
        reason = reason or _why_not_by_tma(store, layout, target)
        if reason and store_legality.staged_pairs(target, store.view.type.shape[1]):
            log.remark(store, f"epilogue-staging: c is stored by threads: {reason}")
            return False
        buffers = self._buffers(store, layout, by_threads=bool(reason))
        if not reason:
            _check_room(kernel, store, buffers * layout.slot_bytes, target)
        write = self._write(store, layout, target)
        parts = self._parts(store, target, transposed, by_threads=bool(reason))
        _staged(kernel, store, layout, (buffers, 0 if reason else parts), write)
        return True

    def _bring_operands(
        self, kernel: KernelOp, stores: list[StagedStoreOp], target: Target, log: PassLog
    ) -> None:
        """What epilogues of stores that go together read beside the sums, as far as it is asked to
        come ahead of them."""
        if stored_by_threads(stores[0]):
            if self.ahead or self.vectors != VECTORS[0]:
                rule = "threads read what the epilogue reads: they store the pieces, too"
                log.remark(stores[0], f"epilogue-staging: {rule}")
            return
        brought = self.ahead and load_ahead(kernel, stores, self.ahead, target, log)
        brought |= self.vectors == "ahead" and load_vectors(kernel, stores, log)
        if self.vectors == "registers":
            read_ahead(kernel, stores, target, VECTOR_AXES, log)
        elif self.vectors == "ahead" and holds_sums(target):
            read_ahead(kernel, stores, target, ("", "m"), log)
        if brought:
            _check_pieces(kernel, stores[0], target)

    def _parts(self, store: StoreOp, target: Target, transposed: bool, by_threads: bool) -> int:
        """How many warpgroups let TMA store by themselves, 1 where all threads store together."""
        if self.by == TEAM:
            return 1
        if by_threads:
            rule = "epilogue-staging: pieces that threads store are stored by all of them"
            raise refused(store, f"{rule}, got by={self.by}; use by=team")
        in_groups = rows_of_group(store.view) is not None
        m, n = store.acc.type.shape
        broken = store_legality.stored_by_warpgroups(target, m, n, transposed, in_groups)
        require(store, broken, "use by=team", "epilogue-staging: ")
        if self.ahead:
            rule = "epilogue-staging: pieces ahead are for all warpgroups together"
            raise refused(store, f"{rule}, got by={self.by} and ahead={self.ahead}; leave one out")
        return target.mma_warpgroups(m, n) or 1

    def _stage_quantized(
        self, kernel: KernelOp, store: StoreQuantizedOp, target: Target, log: PassLog
    ) -> bool:
        piece = piece_of(store, self.columns)
        reason = refusal(store, piece, target)
        if reason:
            say_refused(store, reason, log)
            return False
        buffers = self.buffers or TMA_BUFFERS
        _check_room(kernel, store, buffers * piece.slot_bytes, target)
        stage_quantized(store, piece, buffers, kernel)
        return True

    def _buffers(self, store: StoreOp, piece: TileLayout, by_threads: bool) -> int:
        """The number of buffers: as requested, or for stores by threads the most that divide the
        pieces and fit."""
        if self.buffers is not None or not by_threads:
            return self.buffers or TMA_BUFFERS
        pieces = tile_of_c(store)[1] // piece.k
        fitting = max(1, BUFFER_BYTES_MAX // piece.slot_bytes)
        return max(count for count in range(1, fitting + 1) if pieces % count == 0)

    def _write(self, store: StoreOp, piece: TileLayout, target: Target) -> str:
        if self.write == "matrices":
            require(
                store, store_legality.matrix_stores(target), "use write=rows", "epilogue-staging: "
            )
        fits = can_write_matrices(piece) and not store_legality.matrix_stores(target)
        if self.write == "matrices" and not fits:
            raise refused(
                store,
                "epilogue-staging: write=matrices needs 16-bit elements and 16, 32 or 64 columns, "
                f"got {piece.k} columns of {piece.element_bytes} bytes; use write=rows",
            )
        if self.write == "rows" and piece.major == "mn":
            raise refused(
                store,
                "epilogue-staging: write=rows needs rows that lie in line, got exchanged operands, "
                "whose pieces stmatrix transposes; use write=matrices",
            )
        if self.write != "auto":
            return self.write
        return "matrices" if fits else "rows"

    def _columns(self, kernel: KernelOp, item_bytes: int) -> int:
        """The columns of a piece: as requested, or for wider elements than those of C what fits a
        swizzle span."""
        c_bytes = element_bytes(ir.MemRefType(outputs_of(kernel)[0].type).element_type)
        assert self.columns is not None
        return store_legality.columns_beside(self.columns, c_bytes, item_bytes)

    def _why_not_transposed(self, store: StoreOp, target: Target) -> str | None:
        """Why rows of a view whose columns are contiguous are not staged, None where they are."""
        n, item_bytes = tile_of_c(store)[1], element_bytes(store.view.type.element_type)
        return store_legality.matrix_stores(target) or transposed_piece(target, n, 8, item_bytes)

    def _transposed_piece(self, store: StoreOp, target: Target) -> TileLayout:
        """The layout of a piece of a transposed view: some columns, each contiguous."""
        m, n = tile_of_c(store)
        item_bytes = element_bytes(store.view.type.element_type)
        wide = self.columns or transposed_columns(target, n)
        if not self._why_not_transposed(store, target):
            broken = transposed_piece(target, n, wide, item_bytes)
            require(store, broken, where="epilogue-staging: ")
        swizzle = widest_swizzle(TileLayout(m, wide, item_bytes, "mn"))
        return TileLayout(m, wide, item_bytes, "mn", swizzle)

    def _piece(self, kernel: KernelOp, store: StoreOp, target: Target) -> TileLayout:
        """The layout of one piece: rows of C of one swizzle span, or of an odd number of units."""
        m, n = tile_of_c(store)
        item_bytes, odd = element_bytes(store.view.type.element_type), odd_pieces(target)
        if self.columns is None:
            columns = store_legality.widest_piece(m, n, item_bytes, odd)
        else:
            columns = self._columns(kernel, item_bytes)
        broken = store_legality.staged_piece(m, n, columns, item_bytes, odd)
        require(store, broken, where="epilogue-staging: ")
        return piece_layout(m, columns, item_bytes, odd)


def _why_not_by_tma(store: StoreOp, piece: TileLayout, target: Target) -> str | None:
    """Why TMA can't store pieces of a view, None where it can."""
    return (
        piece_refusal(store.view.type, piece, target)
        or legality.stack_pitch(target, step_bytes(store.view))
        or _partial(store.view.type, piece)
        or _narrow(store, piece, target)
    )


def _staged(
    kernel: KernelOp, store: StoreOp, piece: TileLayout, many: tuple[int, int], write: str
) -> None:
    """The store through a ring, in the place of one by threads alone.

    `many` are the buffers, and the parts that TMA stores, 0 where threads do.
    """
    buffers, parts = many
    smem = SmemType.of(piece, store.view.type.element_type)
    top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
    with top, store.location:
        to = _map(store.view, smem, parts) if parts else store.view
        staging = CreateOp(ring=RingType.of(buffers, [smem])).ring
    with ir.InsertionPoint(store), store.location:
        where = {"to": to, "staging": staging, "i": store.i, "j": store.j}
        new = StagedStoreOp(acc=store.acc, write=ir.StringAttr.get(write), **where)
    store.epilogue.blocks[0].append_to(new.epilogue)
    store.operation.erase()


def _check_pairs(kernel: KernelOp) -> None:
    """A pair of 64-row CTAs keeps half of N in the upper lanes; pieces are cut across both."""
    for mma in walk(kernel, PairMmaOp):
        broken = store_legality.staged_pair(mma.acc.type.shape[0])
        require(mma, broken, where="epilogue-staging: ")


def _in_buffers(kernel: KernelOp) -> str:
    """How many buffers a staged store has, in words."""
    counts = [store.staging.type.stages for store in walk(kernel, StagedStoreOp)]
    return f" in {counts[0]} buffers" if counts else ""


def _map(view: Any, smem: SmemType, parts: int) -> ir.Value:
    """The tensor map by which TMA stores parts of pieces; of a group's rows it ends with them."""
    whole = map_type(view.type, smem, 2, lambda _: None)
    if parts > 1:
        whole = part_map(whole, parts)
    transposed = transposed_of(view)
    rows = rows_of_group(view if transposed is None else transposed.view)
    return map_of_view(view, whole if rows is None else ragged_map(whole))


def _partial(view: ir.MemRefType, piece: TileLayout) -> str | None:
    """Why TMA would write beyond a row."""
    contiguous = view.shape[1 if piece.major == "k" else 0]
    return store_legality.stored_rows(contiguous * element_bytes(view.element_type))


def _narrow(store: StoreOp, piece: TileLayout, target: Target) -> str | None:
    """Why threads can't write a piece: with MMAs of 64 rows each has half of a row's columns."""
    return store_legality.staged_rows(target, store.acc.type.shape[0], piece.span_bytes)


def _check_room(kernel: KernelOp, store: Any, staging_bytes: int, target: Target) -> None:
    """Refuse a staging buffer that no longer fits beside the operand ring."""
    free = target.shared_bytes - used_shared_bytes(kernel)
    if staging_bytes > free:
        raise refused(
            store,
            f"epilogue-staging: buffers need {staging_bytes} bytes, over the {free} that are left; "
            "run it before pipelining, or give pipelining fewer stages",
        )


def _check_pieces(kernel: KernelOp, store: StagedStoreOp, target: Target) -> None:
    """Refuse pieces of other operands that do not fit beside the rest."""
    used = used_shared_bytes(kernel)
    if used > target.shared_bytes:
        raise refused(
            store,
            f"epilogue-staging: with pieces of other operands {used} bytes are needed, over the "
            f"{target.shared_bytes} available; use a smaller ahead",
        )

"""Sends the result through swizzled shared memory and TMA instead of stores by threads.

    store %acc, %c[%i, %j]   →   %map = tensor_map %c      %staging = pipe.create : 2 buffers
                                 staged_store %acc, %map, %staging[%i, %j]

The threads write the tile of C to shared memory in pieces, and TMA stores each piece. A piece is
one swizzle span wide: 128 bytes of a row, where they fit. So one piece is stored while the next is
computed, and a few kilobytes of shared memory serve any tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects import legality
from ..dialects.layout import TileLayout, widest_swizzle
from ..dialects.mlir import ir
from ..dialects.pipe import CreateOp, RingType
from ..dialects.target import Target
from ..dialects.tile import (
    WRITES,
    KernelOp,
    PairMmaOp,
    ReducedStoreOp,
    StagedStoreOp,
    StoreOp,
)
from ..dialects.tile_types import SmemType, element_bytes
from ..dialects.verify import can_write_matrices
from .base import PassLog, one_of, option, refused, require, target_of, the_kernel, walk
from .batches import drop_unused, map_of_view, step_bytes
from .persistence import parse_positive
from .rings import used_shared_bytes
from .tensor_maps import map_type, tma_refusal


def parse_columns(text: str) -> int | None:
    """`auto` (None) or a positive count."""
    return None if text == "auto" else parse_positive(text)


@dataclass(frozen=True)
class EpilogueStaging:
    """Stores by threads → pieces through swizzled shared memory, stored by TMA.

    `columns` is the width of a piece; auto is one swizzle span. `buffers` says how many pieces may
    be under way at once. `write` says how threads write a piece; auto is stmatrix for elements of
    16 bits. Where TMA cannot address the rows of C, threads store C as before, and a remark says
    so.
    """

    name: ClassVar[str] = "epilogue-staging"
    columns: int | None = option(None, parse_columns, "auto or a number of columns")
    buffers: int = option(2, parse_positive, "a number of pieces under way at once")
    write: str = option("auto", one_of("auto", *WRITES), "auto, rows or matrices")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        broken = legality.one_program(target_of(module))
        require(kernel, broken, f"drop {self.name}", f"{self.name}: ")
        if walk(kernel, ReducedStoreOp):
            log.remark(kernel, "epilogue-staging: c is stored by threads, which sum a split K")
            log.did("0 stores staged")
            return
        if not walk(kernel, StoreOp):
            raise refused(kernel, "epilogue-staging: stores are staged already; run it once")
        _check_pairs(kernel)
        staged = 0
        for store in walk(kernel, StoreOp):
            staged += self._stage(kernel, store, target_of(module), log)
        drop_unused(kernel)
        log.did(f"{staged} stores staged in {self.buffers} buffers")

    def _stage(self, kernel: KernelOp, store: StoreOp, target: Target, log: PassLog) -> bool:
        layout = self._piece(store)
        view = store.view.type
        reason = (
            tma_refusal(view, layout, target)
            or legality.stack_pitch(target, step_bytes(store.view))
            or _partial(view)
            or _narrow(store, layout, target)
        )
        if reason:
            log.remark(store, f"epilogue-staging: c is stored by threads: {reason}")
            return False
        smem = SmemType.of(layout, store.view.type.element_type)
        _check_room(kernel, store, self.buffers * layout.slot_bytes, target)
        top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
        with top, store.location:
            type_ = map_type(store.view.type, smem, 2, lambda _: None)
            map_ = map_of_view(store.view, type_)
            staging = CreateOp(ring=RingType.of(self.buffers, [smem])).ring
        with ir.InsertionPoint(store), store.location:
            where = {"map": map_, "staging": staging, "i": store.i, "j": store.j}
            write = ir.StringAttr.get(self._write(store, layout))
            new = StagedStoreOp(acc=store.acc, write=write, **where)
        store.epilogue.blocks[0].append_to(new.epilogue)
        store.operation.erase()
        return True

    def _write(self, store: StoreOp, piece: TileLayout) -> str:
        fits = can_write_matrices(piece)
        if self.write == "matrices" and not fits:
            raise refused(
                store,
                "epilogue-staging: write=matrices needs 16-bit elements and 16, 32 or 64 columns, "
                f"got {piece.k} columns of {piece.element_bytes} bytes; use write=rows",
            )
        if self.write != "auto":
            return self.write
        return "matrices" if fits else "rows"

    def _piece(self, store: StoreOp) -> TileLayout:
        """The layout of one piece: rows of C of one swizzle span."""
        m, n = store.acc.type.shape
        item_bytes = element_bytes(store.view.type.element_type)
        whole = TileLayout(m, n, item_bytes, "k")
        if self.columns is None:
            swizzle = widest_swizzle(whole)
            columns = TileLayout(m, n, item_bytes, "k", swizzle).span
        else:
            columns = self.columns
            swizzle = widest_swizzle(TileLayout(m, columns, item_bytes, "k"))
        piece = TileLayout(m, columns, item_bytes, "k", swizzle)
        broken = legality.staged_piece(m, n, columns, item_bytes)
        require(store, broken, where="epilogue-staging: ")
        return piece


def _check_pairs(kernel: KernelOp) -> None:
    """A pair of 64-row CTAs keeps half of N in the upper lanes; pieces are cut across both."""
    for mma in walk(kernel, PairMmaOp):
        broken = legality.staged_pair(mma.acc.type.shape[0])
        require(mma, broken, where="epilogue-staging: ")


def _partial(view: ir.MemRefType) -> str | None:
    """Why TMA would write beyond a row."""
    return legality.stored_rows(view.shape[1] * element_bytes(view.element_type))


def _narrow(store: StoreOp, piece: TileLayout, target: Target) -> str | None:
    """Why threads can't write a piece: with MMAs of 64 rows each has half of a row's columns."""
    return legality.staged_rows(target, store.acc.type.shape[0], piece.span_bytes)


def _check_room(kernel: KernelOp, store: StoreOp, staging_bytes: int, target: Target) -> None:
    """Refuse a staging buffer that no longer fits beside the operand ring."""
    free = target.shared_bytes - used_shared_bytes(kernel)
    if staging_bytes > free:
        raise refused(
            store,
            f"epilogue-staging: buffers need {staging_bytes} bytes, over the {free} that are left; "
            "run it before pipelining, or give pipelining fewer stages",
        )

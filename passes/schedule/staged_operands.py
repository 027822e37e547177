"""Prefetches an epilogue's operands of the size of C to shared memory by TMA.

    for %k { … mma … }                     %ring = pipe.create : slots of pieces
    staged_store %acc {              →     load_ahead %map → %ring[%i, %j]
      element %e0 }                        for %k { … mma … }
                                           staged_store %acc { element %e0, %ring }

The first pieces of a tile are on their way while its main loop runs. The store reads one after the
other, and starts the load of a later one into each slot that it has read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...dialects import legality
from ...dialects.layout import LINEAR, UNIT_BYTES, TileLayout, piece_layout, widest_swizzle
from ...dialects.mlir import ir
from ...dialects.mma_units import WARP
from ...dialects.pipe import CreateOp, RingType
from ...dialects.target import Target
from ...dialects.tile import MMAS, ElementOp, KernelOp, StagedStoreOp, StoreOp
from ...dialects.tile.ahead import LoadAheadOp, ReadAheadOp, StagedElementOp
from ...dialects.tile.outputs import StoreGroupsOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile_types import SmemType, TensorMapType, element_bytes, integer
from ...dialects.verify import tile_of_c
from ..base import PassLog, walk
from ..batches import argument_of, map_of_view, step_bytes
from ..groups import rows_of_group
from ..places import PAIR
from ..tensor_maps import map_type, piece_refusal, vector_map_type

BOX_MAX = 256  # elements along an axis (cuTensorMapEncodeTiled, boxDim)


def load_ahead(
    kernel: KernelOp, stores: list[StagedStoreOp], slots: int, target: Target, log: PassLog
) -> int:
    """Bring each such operand of stores that go together through a ring of so many slots; how many
    there are."""
    count, store = 0, stores[0]
    for view, elements in _operands(stores, "mn").items():
        piece = piece_of(store, view.type)
        reason = _apart(kernel, view, stores) or _refusal(view, piece, target)
        if reason:
            name = _name(kernel, view)
            log.remark(store, f"epilogue-staging: {name} is read by threads: {reason}")
            continue
        smem = SmemType.of(piece, view.type.element_type)
        type_ = map_type(view.type, smem, 2, lambda _: None)
        _bring(kernel, store, elements, type_, (smem, slots))
        count += 1
    return count


def load_vectors(kernel: KernelOp, stores: list[StagedStoreOp], log: PassLog) -> int:
    """Bring the columns of each operand that has an element for each; how many there are.

    Warpgroups that store by themselves each have a slot of their own.
    """
    store = stores[0]
    count, columns = 0, tile_of_c(store)[1]
    for view, elements in _operands(stores, "n").items():
        piece = TileLayout(1, columns, element_bytes(view.type.element_type), "k", LINEAR)
        reason = _apart(kernel, view, stores) or _vector_refusal(view, piece)
        if reason:
            name = _name(kernel, view)
            log.remark(store, f"epilogue-staging: {name} is read by threads: {reason}")
            continue
        smem = SmemType.of(piece, view.type.element_type)
        _bring(kernel, store, elements, vector_map_type(view.type, smem), (smem, store.parts))
        count += 1
    return count


def read_ahead(
    kernel: KernelOp,
    stores: list[StagedStoreOp],
    target: Target,
    all_axes: Iterable[str],
    log: PassLog,
) -> None:
    """Let threads read what they need of vectors and scalars of these axes into registers."""
    store = stores[0]
    for axes in all_axes:
        for view in _operands(stores, axes):
            reason = _apart(kernel, view, stores) or _held_refusal(view, axes, target)
            if reason:
                name = _name(kernel, view)
                log.remark(store, f"epilogue-staging: {name} is read by the store: {reason}")
                continue
            with ir.InsertionPoint(_first_product(store)), store.location:
                ReadAheadOp(source=view, i=store.i, j=store.j, axes=ir.StringAttr.get(axes))


def _held_refusal(view: Any, axes: str, target: Target) -> str | None:
    """Why threads do not keep what they need of a view in registers."""
    if not holds_sums(target):
        return "no warpgroup holds the sums"
    if ends_in_pair(view, axes):
        return f"its {view.type.shape[0]} columns end between two that a thread has"
    return "each matrix has its own" if argument_of(view) != view else None


def _apart(kernel: KernelOp, view: Any, stores: list[StagedStoreOp]) -> str | None:
    """Why a view does not come ahead of stores: others read it, too, which do not go with them."""
    kernel_stores = walk(kernel, StoreOp | StagedStoreOp | StoreGroupsOp | StoreQuantizedOp)
    others = [each for each in kernel_stores if each not in stores]
    reads = (each.source for store in others for each in walk(store, ElementOp))
    return "another output that is stored by itself reads it" if view in reads else None


def _operands(stores: list[StagedStoreOp], axes: str) -> dict[Any, list[ElementOp]]:
    """The reads of each view that is indexed by these axes."""
    found: dict[Any, list[ElementOp]] = {}
    for element in (each for store in stores for each in walk(store, ElementOp)):
        if element.axes.value == axes and not isinstance(element, StagedElementOp):
            found.setdefault(element.source, []).append(element)
    return found


def _vector_refusal(view: Any, piece: TileLayout) -> str | None:
    """Why TMA does not bring a tile's columns of a view."""
    if argument_of(view) != view:
        return "each matrix has its own"
    if piece.k > BOX_MAX:
        return f"a box has {BOX_MAX} elements, and a tile {piece.k} columns"
    broken = piece.size_bytes % UNIT_BYTES
    return f"{piece.size_bytes} bytes are no whole units of {UNIT_BYTES}" if broken else None


def piece_of(store: StagedStoreOp, view: ir.MemRefType) -> TileLayout:
    """The layout of a piece: as many rows and columns as a piece of C."""
    own, item_bytes = store.staging.type.tiles[0].layout, element_bytes(view.element_type)
    if own.major == "k":
        return piece_layout(own.mn, own.k, item_bytes, own.has_odd_rows)
    plain = TileLayout(own.mn, own.k, item_bytes, own.major)
    return replace(plain, swizzle=widest_swizzle(plain))


def _refusal(view: Any, piece: TileLayout, target: Target) -> str | None:
    """Why TMA does not bring pieces of a view."""
    if rows_of_group(view) is not None:
        return "its rows are those of a group"
    return (
        piece.fits()
        or piece_refusal(view.type, piece, target)
        or legality.stack_pitch(target, step_bytes(view))
    )


def _bring(
    kernel: KernelOp,
    store: StagedStoreOp,
    elements: list[ElementOp],
    type_: TensorMapType,
    ring: tuple[SmemType, int],
) -> None:
    """Load a view by a map of that type through a ring of tiles, of so many slots."""
    (smem, slots), view = ring, elements[0].source
    with ir.InsertionPoint.at_block_begin(kernel.body.blocks[0]), store.location:
        map_ = map_of_view(view, type_)
        made = CreateOp(ring=RingType.of(slots, [smem])).ring
    pieces = tile_of_c(store)[1] // smem.layout.k
    with ir.InsertionPoint(_first_product(store)), store.location:
        count = integer(pieces)
        LoadAheadOp(map=map_, ring=made, i=store.i, j=store.j, pieces=count)
    _read_pieces(elements, made)


def _read_pieces(elements: list[ElementOp], ring: ir.Value) -> None:
    for element in elements:
        with ir.InsertionPoint(element), element.location:
            value = element.value
            made = StagedElementOp(
                source=element.source, axes=element.axes, piece=ring, value=value.type
            )
        value.replace_all_uses_with(made.value)
        element.operation.erase()


def _first_product(store: StagedStoreOp) -> Any:
    """The first op beside a store that multiplies: its tile is known there."""
    block = store.operation.block
    return next(op for op in block.operations if isinstance(op, MMAS) or walk(op, MMAS))


def _name(kernel: KernelOp, view: Any) -> str:
    number = ir.BlockArgument(argument_of(view)).arg_number
    return ir.StringAttr(kernel.arg_names[number]).value


def ends_in_pair(view: Any, axes: str) -> bool:
    """Whether columns end between two neighbours: those of a C with exchanged operands may."""
    return axes == "n" and view.type.shape[0] % PAIR != 0


def holds_sums(target: Target) -> bool:
    """Whether warpgroups hold sums in registers."""
    return not target.has_tensor_memory and target.mma.issuer != WARP

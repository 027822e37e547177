"""Checks of prefetched operands of an epilogue.

ahead    a store by TMA, or stores of outputs that go together, read what one tile.load_ahead before
         them starts to load: of their own tile, in pieces like theirs, by a ring and a map that
         nothing else uses; threads that hold sums in registers read vectors and scalars ahead of a
         store by TMA that reads them, each once
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.pipe import AcquireOp, DrainOp
from ....dialects.sm.threads import RunOp
from ....dialects.target import Target
from ....dialects.tile import KernelOp, StagedStoreOp
from ....dialects.tile.ahead import LoadAheadOp, ReadAheadOp, StagedElementOp
from ....dialects.tile_types import TensorMapType, integers_of
from ....dialects.verify import tile_of_c
from ...base import refused, walk
from ...batches import argument_of, map_definition, transposed_of, view_of_map
from ...expand.reads import plain_reads
from ...outputs import stored_together
from ...reused_slots import agent_around, drain_before, place_in, steps_before
from ...schedule.staged_operands import ends_in_pair, holds_sums
from ...tensor_maps import map_type, transposed_map, vector_map_type
from ..products.operands import check_map


def check_load_ahead(op: LoadAheadOp) -> None:
    """Somebody must read what is loaded."""
    if not any(isinstance(use.owner.opview, StagedElementOp) for use in op.ring.uses):
        raise refused(op, "ahead: a store must read what is loaded, got none that does; drop it")


def check_read_ahead(kernel: KernelOp, op: ReadAheadOp, target: Target) -> None:
    """A store of its tile must read what is read, which the store's threads have by then."""
    if not holds_sums(target):
        rule = "ahead: threads read vectors ahead where warpgroups hold the sums"
        raise refused(op, f"{rule}, got {target.name}; drop it")
    if argument_of(op.source) != op.source:
        raise refused(op, "ahead: must read a view of the kernel, got a part of one; drop it")
    if ends_in_pair(op.source, op.axes.value):
        rule = "ahead: pairs of columns must end with those of C"
        raise refused(op, f"{rule}, got {op.source.type}; drop it")
    what = (op.source, op.axes.value, op.i, op.j)
    others = [
        each
        for each in walk(kernel, ReadAheadOp)
        if (each.source, each.axes.value, each.i, each.j) == what
    ]
    stores = [
        together
        for together in stored_together(walk(kernel, StagedStoreOp))
        if any(_reads(store, op) for store in together)
    ]
    if len(stores) != 1 or len(others) != 1:
        raise refused(
            op,
            "ahead: one store by TMA of its tile, beside it and after it, must read what is read "
            f"ahead once, got {len(stores)} that do and {len(others)} reads; drop it",
        )


def _reads(store: StagedStoreOp, op: ReadAheadOp) -> bool:
    """Whether a store comes after a read of its tile, and reads the same."""
    if type(store) is not StagedStoreOp or not isinstance(store.to.type, TensorMapType):
        return False
    place, tile = _in_program(op), (store.i, store.j)
    behind = place.block == store.operation.block and place.is_before_in_block(store.operation)
    return behind and tile == (op.i, op.j) and bool(plain_reads(store, op))


def check_ahead(store: Any) -> None:
    """What the epilogue of a store reads of such rings."""
    elements = walk(store, StagedElementOp)
    if elements and not isinstance(getattr(store, "to", store).type, TensorMapType):
        raise refused(store, "ahead: only stores by TMA read pieces, got another; read the view")
    for element in elements:
        load = _load_of(store, element)
        _check_shape(store, load)
        _check_map(load, element.source)
        if argument_of(element.source) != map_definition(load.map).view:
            raise refused(load, "ahead: must load the view that the epilogue names, got another")


def _check_map(load: LoadAheadOp, view: Any) -> None:
    """Whether the map says what its view is."""
    smem = load.ring.type.tiles[0]
    if not load.is_vector:
        transposed = transposed_of(view) is not None
        whole = map_type(view.type, smem, 2, lambda _: None) if transposed else None
        check_map(load, load.map, smem, whole)
        return
    wanted, got = vector_map_type(view.type, smem), load.map.type
    if got != wanted:
        raise refused(load, f"ahead: the tensor map of {view.type} must be {wanted}, got {got}")


def check_piece(op: Any) -> None:
    """Whether the map of a piece, or a vector, that is on its way says what its view is."""
    view, smem = view_of_map(op.map), op.tile.type
    if view.rank == 1:
        wanted, got = vector_map_type(view, smem), op.map.type
        if got != wanted:
            raise refused(op, f"ahead: the tensor map of {view} must be {wanted}, got {got}")
        return
    check_map(op, op.map, smem, transposed_map(view, smem))


def _load_of(store: Any, element: StagedElementOp) -> LoadAheadOp:
    """The one load into the ring of an element, before the store."""
    users = [use.owner.opview for use in element.piece.uses]
    loads = [user for user in users if isinstance(user, LoadAheadOp)]
    own = [each.operation for each in _with(store)]
    others = [user for user in users if user not in loads and _store_of(user) not in own]
    if len(loads) != 1 or others:
        raise refused(
            store,
            f"ahead: one tile.load_ahead must fill a ring for this store alone, got {len(loads)} "
            f"and {len(others)} other users; give it a ring",
        )
    place = _in_program(loads[0])
    drain = drain_before(loads[0])
    if drain is not None:
        _check_left(loads[0], drain)
        return loads[0]
    same = place.block == store.operation.block and place.is_before_in_block(store.operation)
    if not same and not _is_beside(loads[0]):
        raise refused(loads[0], "ahead: must stand beside the store and before it; move it")
    return loads[0]


def _is_beside(load: LoadAheadOp) -> bool:
    """Whether another role loads all pieces of a CTA's one tile, each into a slot of its own."""
    agent = agent_around(load)
    one = _in_program(load).parent == agent.operation and not isinstance(agent, KernelOp)
    return one and load.ring.type.stages == load.pieces.value


def _check_left(load: LoadAheadOp, drain: DrainOp) -> None:
    """Slots of operands must be left where pieces are loaded into them."""
    place, agent = _in_program(load), agent_around(load)
    later = [op for op in walk(agent, AcquireOp) if not _stands_before(op, place, agent)]
    one = place.parent == agent.operation and not isinstance(agent, KernelOp)
    kernel = agent.operation.parent.opview
    if not one or later or integers_of(kernel.cluster) != [1, 1, 1]:
        rule = "ahead: a role of a CTA with one tile and no cluster loads into slots that are left"
        raise refused(load, f"{rule}, after what fills them, got another; give pieces a ring")
    steps = steps_before(agent, drain.ring)
    left = None if steps is None else place_in(drain.ring, steps, load.ring)
    needed = None if left is None else left.drained
    got = drain.slots.value, load.ring.type.stages
    if needed is None or got != (needed, load.pieces.value):
        rule = f"ahead: {needed or 'more than all'} slots must be left for {load.pieces.value}"
        raise refused(load, f"{rule} pieces, got {got[0]} for {got[1]}; drain as many")


def _stands_before(op: Any, place: ir.Operation, agent: Any) -> bool:
    """Whether an op of an agent runs before a place in its program."""
    inner = op.operation
    while inner.parent != agent.operation:
        inner = inner.parent
    return inner == place or inner.is_before_in_block(place)


def _with(store: Any) -> list[Any]:
    """A store and those that go to memory together with it."""
    ops = list(store.operation.block.operations)
    stores = [op for op in ops if isinstance(op, StagedStoreOp)]
    return next((each for each in stored_together(stores) if store in each), [store])


def _store_of(op: Any) -> ir.Operation | None:
    """The op whose epilogue an op is in."""
    return op.operation.parent if isinstance(op, StagedElementOp) else None


def _in_program(op: Any) -> ir.Operation:
    """An op, or the region of one lane that it is in."""
    parent = op.operation.parent
    return parent if isinstance(parent.opview, RunOp) else op.operation


def _check_shape(store: Any, load: LoadAheadOp) -> None:
    own, piece = store.staging.type.tiles[0].layout, load.ring.type.tiles[0].layout
    columns = tile_of_c(store)[1]
    wanted = (1, columns, 1) if load.is_vector else (own.mn, own.k, columns // own.k)
    got = (piece.mn, piece.k, load.pieces.value)
    if not load.is_vector and piece.major != own.major:
        rule = f"ahead: must load pieces that lie as those of the store, {own.major!r}"
        raise refused(load, f"{rule}, got {piece.major!r}; give them its layout")
    if got != wanted:
        raise refused(
            load,
            "ahead: must load {}x{} in {} pieces, as the store, got {}x{} in {}".format(
                *wanted, *got
            ),
        )
    if load.parts != getattr(store, "parts", 1) and load.is_vector:
        raise refused(
            load,
            f"ahead: each warpgroup that stores must have a slot of a vector, got {load.parts} for "
            f"{store.parts}",
        )
    if (load.i, load.j) != (store.i, store.j):
        raise refused(load, "ahead: must load the tile that the store stores, got another place")

"""Checks of what expanded kernels do with the accumulators that their threads read.

outputs    each output is written, by a store of the kernel's own; pieces go to the place of their
           tile, from buffers that somebody has written, and no written buffer is left
values     who takes values that a thread has read takes all of them
places     they are told to lie where the thread has them: so many columns after its first one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.duals import JoinOp
from ....dialects.tile.pieces import (
    ApplyEpilogueOp,
    ReadFragmentOp,
    WriteMatricesOp,
    WritePairsOp,
    WriteUnitOp,
)
from ....dialects.tile.stores import PartPlaceOp, TmaStoreOp
from ....dialects.tile.sums import SumsRowOp
from ....dialects.tile.threads import (
    ReadMatricesOp,
    ReadRowOp,
    ReadRowsOp,
    WritePartialOp,
    WriteRowOp,
)
from ....dialects.tile_types import TensorMapType, integers_of
from ....dialects.verify import products_of
from ...base import refused, walk
from ...batches import view_of_map
from ...expand.thread_sums import share_of
from ...indices import place_of
from ...outputs import outputs_of
from ...places import PAIR, PAIR_EVERY, behind
from ...tensor_maps import byte_map, transposed_map
from ..products.operands import check_map

Taker = WriteRowOp | WritePartialOp | ApplyEpilogueOp
Write = WriteUnitOp | WriteMatricesOp | WritePairsOp
ReadOfRow = ReadRowOp | ReadRowsOp | ReadMatricesOp | SumsRowOp


def check_written(kernel: KernelOp) -> None:
    """Refuse, at the op, what breaks a rule."""
    for number, view in enumerate(outputs_of(kernel)):
        if not _is_written(view):
            rule = "written: each output must be stored to"
            raise refused(kernel, f"{rule}, got no store to output {number}; store it")
    for op in walk(kernel, TmaStoreOp):
        _check_store(op)
    parts = walk(kernel, PartPlaceOp)  # threads that store them take the buffer anew
    for op in walk(kernel, Write) if not parts else ():
        if all(isinstance(use.owner.opview, Write) for use in op.buffer.uses):
            rule = "written: a buffer that is written must be stored"
            raise refused(op, f"{rule}, got nobody that reads it; store it")
    for op in walk(kernel, Taker):
        _check_place(kernel, op)
    for read in walk(kernel, ReadOfRow | ReadFragmentOp):
        for values in read.operation.results:
            _check_all_taken(read, values)


def _is_written(view: ir.Value) -> bool:
    """Whether an op without results takes a view, a part of it or a map of either."""
    for use in view.uses:
        results = list(use.owner.results)
        parts = [each for each in results if isinstance(each.type, ir.MemRefType | TensorMapType)]
        if not results or any(map(_is_written, parts)):
            return True
    return False


def _check_store(op: TmaStoreOp) -> None:
    """Whether a piece goes to the place of its tile, by a map that says what its view is."""
    view, smem = view_of_map(op.map), op.buffer.type
    packed = view.element_type != smem.element
    check_map(op, op.map, smem, byte_map(view, smem) if packed else transposed_map(view, smem))
    for axis, index in zip("MN", (op.i, op.j), strict=True):
        if place_of(index) != "MN".index(axis):
            rule = f"tiles: must store to the {axis} place of its tile"
            raise refused(op, f"{rule}, got another index; store there")


def _check_all_taken(read: Any, values: ir.Value) -> None:
    users = [use.owner.opview for use in values.uses]
    joined = [each for user in users if isinstance(user, JoinOp) for each in user.values.uses]
    users += [use.owner.opview for use in joined]
    takers = [user for user in users if isinstance(user, Taker)]
    if not users:
        raise refused(read, "written: must be stored, got values that nobody takes; store them")
    for target in {_target_of(user) for user in takers}:
        mine = [user for user in takers if _target_of(user) == target]
        taken = {each for user in mine for each in _taken(user)}
        count = ir.VectorType(mine[0].values.type).shape[0] // _products(mine[0])
        if missing := sorted(set(range(count)) - taken):
            rule = f"written: all {count} values must be taken"
            raise refused(mine[0], f"{rule}, got none that takes {missing[0]}; take each")


def _taken(op: Taker) -> range:
    first = op.first.value
    if isinstance(op, WriteRowOp | WritePartialOp):
        return range(first, first + op.width.value)
    return range(first, first + ir.VectorType(op.outputs.type).shape[0])


def _products(op: Taker) -> int:
    return 1 if isinstance(op, WritePartialOp) else products_of(op)


def _target_of(op: Taker) -> ir.Value:
    """What the values are for: a view or its map, or sums of parts."""
    if isinstance(op, WritePartialOp):
        return op.memory
    return op.view if isinstance(op, WriteRowOp) else op.to


def _check_place(kernel: KernelOp, op: Taker) -> None:
    """Whether values are told to lie after the thread's first as who read them has them."""
    made, first = _maker(op.values), op.first.value
    if isinstance(op, WriteRowOp) and isinstance(made, ReadOfRow):
        wanted, got = _columns(kernel, made)(first), op.behind.value
    elif isinstance(op, ApplyEpilogueOp) and isinstance(made, ReadFragmentOp):
        wanted, got = list(behind(first)), integers_of(op.behind)
    else:
        return
    if wanted != got:
        rule = f"written: value {first} lies {wanted} after the thread's first"
        raise refused(op, f"{rule}, got {got}; say where it lies")


def _maker(values: ir.Value) -> Any:
    """Who read them; of values that are joined, who read the first."""
    while not isinstance(values.owner, ir.Block) and isinstance(values.owner.opview, JoinOp):
        values = values.owner.operands[0]
    return None if isinstance(values.owner, ir.Block) else values.owner.opview


def _columns(kernel: KernelOp, read: Any) -> Callable[[int], int]:
    """The column of a thread's value, after its first one."""
    near, every = PAIR, PAIR_EVERY
    if isinstance(read, ReadRowOp):
        return lambda value: value
    if isinstance(read, SumsRowOp):
        share = share_of(kernel, read.acc)
        near, every = share.n_group, share.columns * share.n_group
    return lambda value: value // near * every + value % near

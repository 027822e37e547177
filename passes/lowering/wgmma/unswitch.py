"""One K loop for each width of MMAs, for tiles of equal height (loop unswitching).

level_mma %count       →  when count <= 64 { narrow_mma; for %k { …, narrow_mma }; wait }
for %k {                                    take_columns }
  …, level_mma %count }   when count > 64 { when count <= 72 { … }
wgmma_wait                                  when count > 72 { … } }

Each width has sums of its own, which `take_columns` copies after the wait. In the same registers
those of one width begin those of the next, and of every third kernel ptxas then waited for each
MMA before the next one ("serialized due to insufficient register resources").
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import arith, ir
from ....dialects.sm.types import attribute_of
from ....dialects.tile import AccumulatorOp, KernelOp, MmaOp
from ....dialects.tile.level import LevelMmaOp, NarrowMmaOp, TakeColumnsOp
from ... import build
from ...base import walk
from ...clone import Mapping, clone
from .level import widths_of


def unswitch(kernel: KernelOp) -> None:
    """Write out the loops of each tile's program."""
    blocks: list[ir.Block] = []
    for op in walk(kernel, LevelMmaOp):
        if all(op.operation.block != each for each in blocks):
            blocks.append(op.operation.block)
    for block in [each for each in blocks if not any(_inside(each, other) for other in blocks)]:
        _unswitch(block)


def _inside(block: ir.Block, other: ir.Block) -> bool:
    """Whether it is in an op of the other one."""
    op: Any = block.owner
    while op is not None and op.operation.name not in ("sm.warps", "tile.kernel"):
        if op.operation.block == other:
            return True
        op = op.operation.parent
    return False


def _unswitch(block: ir.Block) -> None:
    """From the first MMA of the block to the wait after the last."""
    ops = list(block.operations)
    found = [number for number, op in enumerate(ops) if _mmas(op)]
    first, last = found[0], found[-1]
    while last + 1 < len(ops) and isinstance(ops[last + 1], sm.WgmmaWaitOp):
        last += 1
    segment = ops[first : last + 1]
    mma = _mmas(segment[0])[0]
    widths = widths_of(mma.acc.type.shape[1], mma.unit.value)
    with ir.InsertionPoint(segment[0]), segment[0].operation.location:
        _choose(segment, build.as_i32(mma.count), widths)
    for op in reversed(segment):
        if not any(list(result.uses) for result in op.operation.results):
            op.operation.erase()


def _mmas(op: Any) -> list[LevelMmaOp]:
    return [op] if isinstance(op, LevelMmaOp) else walk(op, LevelMmaOp)


def _choose(segment: list[Any], count: ir.Value, widths: list[int]) -> None:
    """By halves of the widths that are left."""
    if len(widths) == 1:
        _of_width(segment, widths[0])
        return
    half = len(widths) // 2
    fits = build.less(count, widths[half - 1] + 1)
    for takes, some in ((fits, widths[:half]), (None, widths[half:])):
        with build.when(takes if takes is not None else arith.xori(fits, build.true())):
            _choose(segment, count, some)


def _of_width(segment: list[Any], columns: int) -> None:
    """The segment for one width, with sums of its own."""
    acc: Any = _mmas(segment[0])[0].acc
    with ir.InsertionPoint.after(acc.owner):
        own = AccumulatorOp(acc=acc.type).acc
    mapping: Mapping = {acc: own}
    for op in segment:
        for mma in _mmas(clone(op, mapping).opview):
            _narrow(mma, columns)
    TakeColumnsOp(acc=acc, own=own, columns=attribute_of(columns))


def _narrow(mma: LevelMmaOp, columns: int) -> None:
    """The same of one width."""
    fields = {field.name: getattr(mma, field.name) for field in MmaOp._fields}
    with ir.InsertionPoint(mma), mma.location:
        NarrowMmaOp(**fields, columns=attribute_of(columns))
    mma.operation.erase()

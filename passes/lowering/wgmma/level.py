"""`tile.level_mma` as wgmma: with as many columns as its tile has rows.

The N of a wgmma is a part of the instruction, so there is a loop along K for each width
(`unswitch`). A branch inside the loop lets ptxas serialize the MMAs.
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import ir, vector
from ....dialects.tile.level import LEAST_ROWS, NarrowMmaOp, TakeColumnsOp
from ... import build
from ..registers.register_accumulator import joined_parts, parts, pinned, struct_of_type
from ..scope.scope import Scope, lowered_parts
from .mma import multiply_columns


def widths_of(columns: int, unit: int) -> list[int]:
    """The widths that there are MMAs of."""
    least = min(columns, -(-LEAST_ROWS // unit) * unit)
    return [*range(least, columns, unit), columns]


def lower_narrow_wgmma(scope: Scope, op: NarrowMmaOp) -> None:
    """Multiply into the first columns of the sums."""
    multiply_columns(scope, op, op.columns.value)


def lower_take_columns(_: Scope, op: TakeColumnsOp) -> None:
    """Copies, so that MMAs of one width have registers that those of others need not begin with."""
    struct, count = struct_of_type(op.acc.type), op.columns.value // 2
    for slot, own in zip(lowered_parts(op.acc), lowered_parts(op.own), strict=True):
        held = parts(pinned(llvm.load(struct, own)))
        words = ir.VectorType.get([count], build.i32())
        taken = vector.FromElementsOp(ir.VectorType.get([count], held[0].type), held[:count]).result
        kept = sm.KeepOp.of(llvm.bitcast(words, taken), after=words).after
        kept = llvm.bitcast(taken.type, kept)
        copies = [vector.ExtractOp(kept, [], [at]).result for at in range(count)]
        zero = llvm.zero(held[0].type)
        llvm.store(joined_parts(struct, [*copies, *[zero] * (len(held) - count)]), slot)

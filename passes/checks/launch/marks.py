"""Checks of the time stamps of `instrument`.

marks    a row of `marks` for each CTA, a column of its own for each place; all of one clock
"""

from __future__ import annotations

from math import prod

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.marks import MARKS, MarkOp
from ....dialects.tile_types import integers_of
from ...base import refused, walk
from ...duals import arg_names, first_other
from ...outputs import outputs_of


def check_mark(kernel: KernelOp, op: MarkOp) -> None:
    """The argument that it writes to, and its column there."""
    arguments, names = list(kernel.body.blocks[0].arguments), arg_names(kernel)
    known = dict(zip(names, arguments, strict=True)).get(MARKS)
    inputs = arguments[first_other(kernel) : -len(outputs_of(kernel))]
    if known is None or op.marks != known or known not in inputs:
        raise refused(op, f"marks: must write to the input {MARKS!r}, got another view; name it so")
    rows, ctas = ir.MemRefType(known.type).shape[0], prod(integers_of(kernel.grid))
    if rows != ctas:
        raise refused(op, f"marks: must have a row for each of {ctas} CTAs, got {rows}; resize it")
    others = walk(kernel, MarkOp)
    if sum(each.column.value == op.column.value for each in others) > 1:
        raise refused(op, f"marks: each place has a column, got two of {op.column.value}; move one")
    if any(each.unit != op.unit for each in others):
        raise refused(op, "marks: all tell one clock, got two units; take one")

"""Checks that MMAs which skip zeros skip nothing else."""

from __future__ import annotations

from typing import Any

from ....dialects import short_legality
from ....dialects.mlir import arith, ir
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ...base import refused, require
from ...clone import constant_of
from ...short_steps import last_step, step_of


def check_short_mma(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether its short step is the last along K, and long enough."""
    require(op, short_legality.short_steps(target), "run skip-zeros for another", "short: ")
    found, number = last_step(kernel, op), step_of(op)
    if found is None or number is None:
        raise refused(
            op, "short: steps must be those of one loop along all of K, got others; take tile.mma"
        )
    if not _is_last(op.last, number, found.number):
        rule = f"short: last must compare the number of the step with {found.number}"
        raise refused(op, f"{rule}, got another value; compare so")
    if op.depth.value < found.depth:
        rule = f"short: the last step must multiply {found.depth} elements along K"
        raise refused(op, f"{rule}, got {op.depth.value}; take as many")


def _is_last(flag: ir.Value, number: ir.Value, last: int) -> bool:
    """Whether a flag says that a step is the last one."""
    compare = flag.owner
    if isinstance(compare, ir.Block) or compare.name != "arith.cmpi":
        return False
    predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
    counted, end = compare.operands
    same = counted == number or (constant_of(counted) == constant_of(number) is not None)
    return same and predicate == arith.CmpIPredicate.eq and constant_of(end) == last

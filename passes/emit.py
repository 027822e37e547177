"""Short names for predicates and for loops, at the current insertion point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..dialects.integers import constant as constant
from ..dialects.integers import like
from ..dialects.mlir import arith, ir, scf


def i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def both(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    """The conjunction of two predicates, None standing for true."""
    if left is None or right is None:
        return left if right is None else right
    return arith.andi(left, right)


def less(left: ir.Value, right: int) -> ir.Value:
    """Unsigned `left < right`."""
    return arith.cmpi(arith.CmpIPredicate.ult, left, like(left, right))


def as_i32(value: ir.Value) -> ir.Value:
    """index → i32."""
    return arith.index_cast(i32(), value)


@contextmanager
def when(condition: ir.Value | None) -> Iterator[None]:
    """Emit the body under `if condition` (None: always)."""
    if condition is None:
        yield
        return
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])


@contextmanager
def loop(start: ir.Value, end: int, step: int) -> Iterator[ir.Value]:
    """Emit the body for an i32 counter from `start` below `end`."""
    for_op = scf.ForOp(start, constant(end), constant(step))
    with ir.InsertionPoint(for_op.body):
        yield for_op.induction_variable
        scf.YieldOp([])

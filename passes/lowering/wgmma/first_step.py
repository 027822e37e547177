"""Merges the peeled first K step into the K loop.

wait; mma; for %k = 1 … {           →  for %k = 0 … { wait; mma; wgmma_wait 1
  wait; mma; wgmma_wait 1; release }     when %k != 0 { release } }

A slot is released one step late (`pipelining`), so the first step releases none and stands before
the loop. ptxas takes 6 to 10 ms for each MMA of a hundred registers or more, a quarter to a third
of all that it takes. A loop that may take no step stays as it is.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from ....dialects import sm
from ....dialects.mlir import arith, ir, scf
from ....dialects.mma_units import WGMMA, WGMMA_WIDE
from ....dialects.target import Target
from ....dialects.tile import KernelOp, MmaOp
from ... import build
from ...base import attributes_of, defining_op, walk
from ...clone import constant_of, effects, erase_unused, index_constant, is_pure

WIDE = 128
"""Columns of an MMA for which ptxas takes long. With 64 columns 128x4096x4096 took 1.5 % longer on
an H200, and with 32 columns 32x8192x4096 took 0.5 % longer, to save ptxas a tenth to a fifth."""


def take_first_steps(kernel: KernelOp, target: Target) -> None:
    """Let each loop of wide MMAs take the step before it, where that does the same."""
    if target.mma.name in (WGMMA.name, WGMMA_WIDE.name) and walk(kernel, sm.WgmmaWaitOp):
        for loop in walk(kernel, scf.ForOp):
            _take(loop)


def _take(loop: scf.ForOp) -> None:
    steps = [constant_of(bound) for bound in (loop.lowerBound, loop.upperBound, loop.step)]
    if steps[0] != 1 or steps[2] != 1 or steps[1] is None or steps[1] < 1:
        return
    inside = effects(loop.body)
    count = 1 + next((n for n, op in enumerate(inside) if isinstance(op, MmaOp)), len(inside))
    if not count < len(inside) or not isinstance(inside[count], sm.WgmmaWaitOp):
        return
    if inside[count - 1].acc.type.shape[1] < WIDE:
        return
    before = _last_before(loop, count)
    if _Alike(loop, before, inside[:count]).all():
        _move(loop, before, inside[count])


def _last_before(loop: scf.ForOp, count: int) -> list[Any]:
    """The last ops before the loop that do something, in program order."""
    ops = list(loop.operation.block.operations)
    number = next(n for n, op in enumerate(ops) if op.operation == loop.operation)
    return [*islice((op for op in reversed(ops[:number]) if not is_pure(op)), count)][::-1]


class _Alike:
    """Whether ops before a loop do what ops in it do in a step 0, and nothing else reads them."""

    def __init__(self, loop: scf.ForOp, before: list[Any], inside: list[Any]) -> None:
        self._loop, self._before, self._inside = loop, before, inside
        self._counter = loop.induction_variable

    def all(self) -> bool:
        pairs = [*zip(self._before, self._inside, strict=False)]
        return (
            len(self._before) == len(self._inside)
            and all(self._ops(one.operation, other.operation) for one, other in pairs)
            and all(map(self._is_read_here, self._before))
        )

    def _ops(self, one: ir.Operation, other: ir.Operation) -> bool:
        return (
            one.name == other.name
            and not len(one.regions)
            and attributes_of(one) == attributes_of(other)
            and len(one.operands) == len(other.operands)
            and all(map(self._values, one.operands, other.operands))
        )

    def _values(self, one: ir.Value, other: ir.Value) -> bool:
        """Whether it is what the value in the loop is in a step 0."""
        if one == other:
            return True
        if other == self._counter:
            return constant_of(one) == 0
        if isinstance(one.owner, ir.Block) or isinstance(other.owner, ir.Block):
            return False
        if ir.OpResult(one).result_number != ir.OpResult(other).result_number:
            return False
        first, second = defining_op(one), defining_op(other)
        places = [n for n, op in enumerate(self._inside) if op.operation == second.operation]
        if places:
            return self._before[places[0]].operation == first.operation
        return is_pure(second) and self._ops(first.operation, second.operation)

    def _is_read_here(self, op: Any) -> bool:
        """Whether none but these ops, and what computes for them, reads what the op gives."""
        own = [each.operation for each in self._before]
        return all(
            use.owner.operation in own for result in op.operation.results for use in result.uses
        )


def _move(loop: scf.ForOp, before: list[Any], wait: Any) -> None:
    with ir.InsertionPoint(loop), loop.operation.location:
        loop.operation.operands[0] = index_constant(0)
    for op in reversed(before):
        op.operation.erase()
    erase_unused(loop.operation.block)
    ops = list(loop.body.operations)[:-1]
    number = next(n for n, op in enumerate(ops) if op.operation == wait.operation)
    with ir.InsertionPoint.after(wait), wait.operation.location:
        later = arith.cmpi(arith.CmpIPredicate.ne, loop.induction_variable, index_constant(0))
        with build.when(later):
            here = ir.InsertionPoint.current.block
    for op in ops[number + 1 :]:
        op.operation.move_before(list(here.operations)[-1].operation)

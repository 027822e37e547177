"""An estimate of the instructions per element of an epilogue, before it is lowered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .epilogue import CIRCULAR, FAST_OUTPUTS, KEEPING, LOGARITHMS, SCALAR_OPS

MOVES = ("arith.constant", "arith.extf", "arith.truncf", "arith.sitofp")
"""Ops that a product without an epilogue has too, or that become part of another."""
INSTRUCTIONS = {
    **dict.fromkeys(MOVES, 0),
    "arith.divf": 9,
    **dict.fromkeys(CIRCULAR, 80),
    "math.exp": 6,
    "math.exp2": 4,
    **dict.fromkeys(LOGARITHMS, 18),
    "math.round": 6,
    "math.sqrt": 8,
    "math.rsqrt": 4,
    "math.tanh": 28,
    "math.erf": 38,
}
"""About how many a thread executes for an op of f32; for one that is not here it is one. A quotient
and a root are what ptxas makes of div.rn.f32 and sqrt.rn.f32 where no number is special."""


FAST_INSTRUCTIONS = {
    **dict.fromkeys(MOVES, 0),
    "arith.divf": 2,
    **dict.fromkeys(CIRCULAR, 80),
    "math.exp": 3,
    **dict.fromkeys(LOGARITHMS, 10),
    "math.tanh": 4,
    "math.erf": 11,
}
"""The same where functions are fast: of what ptxas makes of GELU, SiLU and tanh."""
BRANCHLESS_INSTRUCTIONS = {**INSTRUCTIONS, "math.tanh": 16, "math.erf": 22}
"""The same of functions that stay exact beside them, of SASS of GELU's gradients."""
FAST_SHARE = 0.4
"""Of the time of as many instructions above: code without the branches of div.rn.f32, which a
multiprocessor executes for eight elements side by side (assumed)."""


class Step(NamedTuple):
    """A scalar op: its name, what tells its result from others, and those of its operands."""

    name: str
    result: object
    operands: Sequence[object]


def instructions_of(steps: Iterable[Step], outputs: Iterable[str]) -> int:
    """About how many instructions a thread executes for ops on one element, in terms of exact
    ones; `outputs` are the element types of C and what is beside it."""
    ops = [step for step in steps if step.name in SCALAR_OPS]
    is_fast = all(each in FAST_OUTPUTS for each in outputs)
    if not is_fast:
        return sum(INSTRUCTIONS.get(step.name, 1) for step in ops)
    tables = ((BRANCHLESS_INSTRUCTIONS, FAST_INSTRUCTIONS)[_is_fast(step, ops)] for step in ops)
    counts = (table.get(step.name, 1) for table, step in zip(tables, ops, strict=True))
    return math.ceil(FAST_SHARE * sum(counts))


def _is_fast(step: Step, ops: Sequence[Step]) -> bool:
    """Whether a function has a fast form where it stands, as far as it matters here: the lowering
    takes 1 + tanh and 1 - tanh² by one, as the slope of GELU with its erf and exp, and tanh,
    logarithms and 1 + erf where all that reads them keeps a relative error."""
    if step.name in LOGARITHMS:
        return _keeps(step, ops)
    if step.name not in ("math.tanh", "math.erf"):
        return True
    readers = _readers(step, ops)
    numbers = {each.result for each in ops if each.name == "arith.constant"}
    with_one = [
        each for each in readers if each.name == "arith.addf" and numbers & {*each.operands}
    ]
    if step.name == "math.tanh" and all(
        each in with_one or _is_taken_from_one(each, step, ops) for each in readers
    ):
        return True
    if step.name == "math.erf" and any(each.name == "math.exp" for each in ops):
        return with_one == readers
    return all(_keeps(each, ops) for each in (readers if with_one == readers else [step]))


def _is_taken_from_one(square: Step, step: Step, ops: Sequence[Step]) -> bool:
    """Whether an op squares a result, and the square is taken from a number."""
    squares = square.name == "arith.mulf" and all(each == step.result for each in square.operands)
    return squares and all(each.name == "arith.subf" for each in _readers(square, ops))


def _keeps(step: Step, ops: Sequence[Step]) -> bool:
    """Whether a result reaches the output by nothing but products, quotients and the like."""
    kept = (*KEEPING, "arith.truncf")
    return all(each.name in kept and _keeps(each, ops) for each in _readers(step, ops))


def _readers(step: Step, ops: Sequence[Step]) -> list[Step]:
    return [each for each in ops if step.result in each.operands]

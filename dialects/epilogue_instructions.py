"""About how many instructions an epilogue takes for an element, before there is any."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .epilogue import FAST_OUTPUTS, KEEPING, SCALAR_OPS

MOVES = ("arith.constant", "arith.extf", "arith.truncf", "arith.sitofp")
"""Ops that a product without an epilogue has too, or that become part of another."""
INSTRUCTIONS = {
    **dict.fromkeys(MOVES, 0),
    "arith.divf": 9,
    "math.exp": 6,
    "math.exp2": 4,
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
    "math.exp": 3,
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
    takes tanh, 1 + tanh and 1 + erf by one where all that reads them keeps a relative error."""
    if step.name not in ("math.tanh", "math.erf"):
        return True
    readers = _readers(step, ops)
    numbers = {each.result for each in ops if each.name == "arith.constant"}
    with_one = all(each.name == "arith.addf" and numbers & {*each.operands} for each in readers)
    return all(_keeps(each, ops) for each in (readers if with_one else [step]))


def _keeps(step: Step, ops: Sequence[Step]) -> bool:
    """Whether a result reaches the output by nothing but products, quotients and the like."""
    kept = (*KEEPING, "arith.truncf")
    return all(each.name in kept and _keeps(each, ops) for each in _readers(step, ops))


def _readers(step: Step, ops: Sequence[Step]) -> list[Step]:
    return [each for each in ops if step.result in each.operands]

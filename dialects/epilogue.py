"""The scalar ops that an epilogue region may hold; every lowering maps each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..runtime.math_policies import EXACT as EXACT
from ..runtime.math_policies import FAST as FAST
from ..runtime.math_policies import FUNCTIONS as FUNCTIONS
from ..runtime.math_policies import POLICIES as POLICIES

SCALAR_OPS = (
    "arith.constant",
    "arith.addf",
    "arith.addi",
    "arith.subf",
    "arith.mulf",
    "arith.divf",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.negf",
    "arith.cmpf",
    "arith.select",
    "arith.sitofp",
    "arith.truncf",
    "arith.extf",
    "math.absf",
    "math.erf",
    "math.exp",
    "math.exp2",
    "math.fma",
    "math.rsqrt",
    "math.sqrt",
    "math.tanh",
)


FLOATS = ("f32", "bf16", "f16")
NARROW = ("f8E4M3FN", "f8E5M2")
"""Of results alone: nothing is computed with them. Beyond their largest number, `arith.truncf`
gives that number (PTX ISA, cvt.satfinite), which MLIR leaves open."""
SCALAR_TYPES = {
    "arith.constant": (*FLOATS, *NARROW, "f64", "i64", "i32", "i1"),
    "arith.addi": ("i32",),
    "arith.cmpf": (*FLOATS, "f64", "i1"),
    "arith.select": (*FLOATS, *NARROW, "f64", "i32", "i1"),
    "arith.sitofp": (*FLOATS, "i64", "i32"),
    "arith.truncf": (*FLOATS, *NARROW, "f64"),
    "arith.extf": (*FLOATS, "f64"),
}


def scalar_types(name: str) -> tuple[str, ...]:
    """The types that an op's operands and results may have; f64 is converted and compared only."""
    return SCALAR_TYPES.get(name, FLOATS)


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
FAST_SHARE = 0.4
"""Of the time of as many instructions above: code without the branches of div.rn.f32, which a
multiprocessor executes for eight elements side by side (assumed)."""
FAST_OUTPUTS = ("bf16", "f16", "e4m3", "e5m2")
NO_FUNCTION = (
    "an epilogue must have a function"
    f" ({', '.join(name.removeprefix('math.') for name in FUNCTIONS)}), got none; leave math out"
)
"""What is refused of `math=` where there is nothing that it is about."""


def instructions_of(names: Iterable[str], outputs: Iterable[str]) -> int:
    """About how many instructions a thread executes for ops of these names on one element, in
    terms of exact ones; `outputs` are the element types of C and what is beside it."""
    ops = [name for name in names if name in SCALAR_OPS]
    is_fast = all(each in FAST_OUTPUTS for each in outputs)
    if is_fast and any(name in FUNCTIONS for name in ops):
        return math.ceil(FAST_SHARE * sum(FAST_INSTRUCTIONS.get(name, 1) for name in ops))
    return sum(INSTRUCTIONS.get(name, 1) for name in ops)

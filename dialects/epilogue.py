"""The scalar ops that an epilogue region may hold; every lowering maps each of them."""

from __future__ import annotations

from ..runtime.math_policies import CIRCULAR as CIRCULAR
from ..runtime.math_policies import EXACT as EXACT
from ..runtime.math_policies import FAST as FAST
from ..runtime.math_policies import FUNCTIONS as FUNCTIONS
from ..runtime.math_policies import LOGARITHMS as LOGARITHMS
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
    "math.ceil",
    "math.cos",
    "math.erf",
    "math.exp",
    "math.exp2",
    "math.floor",
    "math.fma",
    "math.log",
    "math.log10",
    "math.log1p",
    "math.log2",
    "math.round",
    "math.roundeven",
    "math.rsqrt",
    "math.sin",
    "math.sqrt",
    "math.tanh",
    "math.trunc",
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


KEEPING = (
    *("arith.mulf", "arith.divf", "arith.negf", "math.absf", "arith.select"),
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
)
"""Ops whose result has the relative error of the operand, if the others have none."""
FAST_OUTPUTS = ("bf16", "f16", "e4m3", "e5m2")
NO_FUNCTION = (
    "an epilogue must have a function"
    f" ({', '.join(name.removeprefix('math.') for name in FUNCTIONS)}), got none; leave math out"
)
"""What is refused of `math=` where there is nothing that it is about."""

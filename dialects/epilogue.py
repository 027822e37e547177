"""The scalar ops that an epilogue region may hold; every lowering maps each of them."""

from __future__ import annotations

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

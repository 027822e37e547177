"""add, sub and fma of f16 or bf16 operands into f32 (PTX ISA §9.7.5, mixed precision)."""

from __future__ import annotations

from itertools import product

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES, two_sum_odd
from . import floats
from .common import bit_type, lanewise

ROUNDINGS = ("", ".rn", ".rz", ".rm", ".rp")
SIGNS = {"add": 1.0, "sub": -1.0}


def _opcodes(*names: str) -> list[str]:
    roundings = ROUNDINGS[names == ("fma",) :]  # which fma must have
    forms = product(names, roundings, ("", ".sat"), ("f16", "bf16"))
    return [f"{name}{rounding}{sat}.f32.{narrow}" for name, rounding, sat, narrow in forms]


def _parts(ins: Decoded) -> tuple[str, str, bool, str]:
    """(name, rounding mode, saturate, narrow type) of an opcode."""
    name, *rest = ins.opcode.split(".")
    mode = rest[0] if rest[0] in ("rn", "rz", "rm", "rp") else "rn"
    return name, mode, "sat" in rest, "bf16" if "bf16" in rest else "f16"


@instruction(*_opcodes("add", "sub"), section="9.7.5")
def build_mixed_sum(ins: Decoded) -> Step:
    """d = a ± c: a is narrow, c and d are f32; one rounding."""
    name, mode, sat, narrow = _parts(ins)
    sign = SIGNS[name]
    read_a = floats.wide_reader(ins, TYPES[narrow], False)
    read_c = floats.wide_reader(ins, TYPES["f32"], False)
    write = floats.writer(ins, TYPES["f32"], mode=mode, sat=sat)

    def compute(a: np.ndarray, c: np.ndarray) -> np.ndarray:
        return write(two_sum_odd(read_a(a), sign * read_c(c)))

    types = [bit_type(16), bit_type(32)]
    return lanewise(ins, types, compute, out=bit_type(32))


@instruction(*_opcodes("fma"), section="9.7.5")
def build_mixed_fma(ins: Decoded) -> Step:
    """d = a · b + c: a and b are narrow, c and d are f32; one rounding (the product is exact)."""
    _, mode, sat, narrow = _parts(ins)
    read = floats.wide_reader(ins, TYPES[narrow], False)
    read_c = floats.wide_reader(ins, TYPES["f32"], False)
    write = floats.writer(ins, TYPES["f32"], mode=mode, sat=sat)

    def compute(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return write(two_sum_odd(read(a) * read(b), read_c(c)))

    types = [bit_type(16), bit_type(16), bit_type(32)]
    return lanewise(ins, types, compute, out=bit_type(32))

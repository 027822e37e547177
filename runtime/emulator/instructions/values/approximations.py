"""Functions by approximate instructions, and reciprocals and roots (PTX ISA §9.7.3.13 to .22).

The ISA bounds the error of an approximate result and leaves the rest to the chip. Here it is the
correctly rounded one, which is inside every bound. `offset` moves the results of f32 to the ends of
what the ISA allows, so that a test can show that a kernel relies on no more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import Type
from . import floats
from .float_arithmetic import Modifiers, bind, one_of, refuse_saturation
from .rounding import exact_lanes, sqrt_f64

offset = 0.0
"""Of each bound: 0 is the correctly rounded result, 1 and -1 are the largest and the smallest."""
BOUNDS = {
    "rcp": 2.0**-23,
    "sqrt": 2.0**-23,
    "rsqrt": 2.0**-22.9,
    "ex2": 2.0**-22,
    "lg2": 2.0**-22,
    "tanh": 2.0**-11,
}
"""Largest relative errors of f32 (PTX ISA, Precision of each instruction; a unit in the last place
is at most 2^-23 of the value). That of lg2 is absolute from 0.5 to 2."""


def _off(ins: Decoded, type_: Type, function: Callable) -> Callable:
    """The function, moved by `offset` where the result is not one that the ISA gives exactly."""
    if type_.name != "f32" or ins.mnemonic not in BOUNDS:
        return function
    bound = BOUNDS[ins.mnemonic]

    def compute(a: np.ndarray) -> np.ndarray:
        result = function(a)
        if not offset:
            return result
        moved = result * (1 + offset * bound)
        if ins.mnemonic == "lg2":
            moved = np.where((a > 0.5) & (a < 2), result + offset * bound, moved)
        return np.where(np.isfinite(a) & (a != 0), moved, result)

    return compute


def _by_high_words(function: Callable, values: np.ndarray) -> np.ndarray:
    """rcp and rsqrt{.approx.ftz}.f64: the high words of operand and result count, and subnormal
    ones are zero (PTX ISA §9.7.3.14, §9.7.3.17)."""
    return _flush_f64(_keep_high_word(function(_flush_f64(_keep_high_word(values)))))


def _flush_f64(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < np.finfo(np.float64).tiny, np.copysign(0.0, values), values)


def _keep_high_word(values: np.ndarray) -> np.ndarray:
    return (values.view(np.uint64) & np.uint64(0xFFFFFFFF_00000000)).view(np.float64)


def _unary(ins: Decoded, function: Callable, directed_f64: Callable | None) -> Step:
    """rcp, sqrt and rsqrt: .approx{.ftz} or .rnd{.ftz} of f32 and f64."""
    type_ = one_of(ins, "f32", "f64")
    approximate = ins.flag("approx")
    modifiers = Modifiers(ins, type_, rounded=not approximate)
    refuse_saturation(ins, modifiers)
    wide = type_.name == "f64"
    if wide and approximate:
        _check_wide(ins, modifiers.flush)
    if wide and modifiers.flush and ins.mnemonic == "sqrt":
        raise ins.trap("operand", "sqrt of .f64 has no .ftz")
    flush = modifiers.flush and not wide
    read = floats.wide_reader(ins, type_, flush)
    write = floats.writer(ins, type_, mode=modifiers.mode, flush=flush)
    if wide and approximate and modifiers.flush:
        return bind(ins, type_, 1, read, lambda a: _by_high_words(function, a), write)
    if wide and modifiers.mode != "rn" and directed_f64 is not None:
        mode = modifiers.mode
        return bind(ins, type_, 1, read, lambda a: directed_f64(a, mode), write)
    return bind(ins, type_, 1, read, _off(ins, type_, function) if approximate else function, write)


def _check_wide(ins: Decoded, flush: bool) -> None:
    """rcp.approx.ftz.f64 and rsqrt.approx{.ftz}.f64."""
    if ins.mnemonic == "sqrt" or (ins.mnemonic == "rcp" and not flush):
        raise ins.trap("operand", "of .f64 there are rcp.approx.ftz and rsqrt.approx, got"
                                  f" {ins.opcode}")  # fmt: skip


def _reciprocal_f64(values: np.ndarray, mode: str) -> np.ndarray:
    return exact_lanes(lambda a: 1 / a, lambda a: 1.0 / a, mode, values)


@instruction("rcp", section="9.7.3.13")
def build_rcp(ins: Decoded) -> Step:
    """rcp{.approx,.rnd}{.ftz}.{f32,f64} d, a."""
    return _unary(ins, lambda a: 1.0 / a, _reciprocal_f64)


@instruction("sqrt", section="9.7.3.15")
def build_sqrt(ins: Decoded) -> Step:
    """sqrt{.approx,.rnd}{.ftz}.{f32,f64} d, a."""
    return _unary(ins, np.sqrt, sqrt_f64)


@instruction("rsqrt", section="9.7.3.16")
def build_rsqrt(ins: Decoded) -> Step:
    """rsqrt.approx{.ftz}.{f32,f64} d, a."""
    if "approx" not in ins.modifiers:
        ins.unmodelled("rsqrt without .approx")
    return _unary(ins, lambda a: 1.0 / np.sqrt(a), None)


def _approximation(ins: Decoded, function: Callable, *types: str) -> Step:
    type_ = one_of(ins, *types)
    if not ins.flag("approx"):
        ins.unmodelled("the instruction without .approx")
    flush = ins.flag("ftz")
    if ins.mnemonic == "ex2" and flush != type_.name.startswith("bf16") and type_.name != "f32":
        needs = "has no" if flush else "needs"
        raise ins.trap("operand", f"ex2 of .{type_.name} {needs} .ftz")
    if ins.mnemonic == "tanh" and flush:
        raise ins.trap("operand", "tanh has no .ftz")
    if type_.name.startswith("bf16"):
        flush = False
    read = floats.wide_reader(ins, type_, flush)
    compute = _off(ins, type_, function)
    return bind(ins, type_, 1, read, compute, floats.writer(ins, type_, flush=flush))


@instruction("sin", section="9.7.3.18")
def build_sin(ins: Decoded) -> Step:
    """sin.approx{.ftz}.f32 d, a."""
    return _approximation(ins, np.sin, "f32")


@instruction("cos", section="9.7.3.19")
def build_cos(ins: Decoded) -> Step:
    """cos.approx{.ftz}.f32 d, a."""
    return _approximation(ins, np.cos, "f32")


@instruction("lg2", section="9.7.3.20")
def build_lg2(ins: Decoded) -> Step:
    """lg2.approx{.ftz}.f32 d, a."""
    return _approximation(ins, np.log2, "f32")


@instruction("ex2", section="9.7.3.21")
def build_ex2(ins: Decoded) -> Step:
    """ex2.approx{.ftz}.type d, a."""
    return _approximation(ins, np.exp2, "f32", "f16", "f16x2", "bf16", "bf16x2")


@instruction("tanh", section="9.7.3.22")
def build_tanh(ins: Decoded) -> Step:
    """tanh.approx.type d, a."""
    return _approximation(ins, np.tanh, "f32", "f16", "f16x2", "bf16", "bf16x2")

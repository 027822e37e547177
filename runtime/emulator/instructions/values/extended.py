"""Extended-precision integer arithmetic through the carry flag CC.CF (PTX ISA §9.7.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.lanes import merge
from ...ptx.registry import Step, instruction
from ...ptx.values import Type


def _sum(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a + b + carry, carry out) of unsigned arrays."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def _difference(a: np.ndarray, b: np.ndarray, borrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a - b - borrow, borrow out) of unsigned arrays."""
    total = a - b - borrow.astype(a.dtype)
    return total, (a < b) | ((a == b) & borrow)


def _bind(
    ins: Decoded, type_: Type, combine: Callable, terms: Callable, *, takes: bool, sets: bool
) -> Step:
    flag, target = ins.program.carry_slot(), ins.target(0, type_)
    none = np.zeros(32, bool)

    def step(warp, mask):
        regs = warp.regs
        value, carry = combine(*terms(regs), regs[flag] if takes else none)
        if target is not None:
            regs[target] = merge(regs[target], value, mask)
        if sets:
            regs[flag] = merge(regs[flag], carry, mask)

    return step


def build_carry(
    ins: Decoded, subtract: bool, high: Callable | None = None, *, takes: bool = False
) -> Step:
    """add, sub (two operands) or mad (`high` given) with carry in (`takes`) and out (.cc)."""
    type_ = ins.take_type("u32", "s32", "u64", "s64")
    sets = ins.flag("cc")
    combine = _difference if subtract else _sum
    terms = _addends(ins, type_) if high is None else _product(ins, type_, high)
    ins.finish_modifiers()
    return _bind(ins, type_, combine, terms, takes=takes, sets=sets)


def _addends(ins: Decoded, type_) -> Callable:
    ins.expect_operands(3)
    a, b = ins.slot(1, type_), ins.slot(2, type_)
    return lambda regs: (regs[a], regs[b])


def _product(ins: Decoded, type_, high: Callable) -> Callable:
    ins.expect_operands(4)
    upper = ins.required(("lo", "hi")) == "hi"
    a, b, c = (ins.slot(number, type_) for number in (1, 2, 3))
    view, raw = type_.dtype, type_.raw
    if upper:
        return lambda regs: (high(regs[a].view(view), regs[b].view(view)).view(raw), regs[c])
    return lambda regs: (regs[a] * regs[b], regs[c])


@instruction("addc", section="9.7.2.2")
def build_addc(ins: Decoded) -> Step:
    """addc{.cc}.type d, a, b: a + b + CC.CF."""
    return build_carry(ins, False, takes=True)


@instruction("subc", section="9.7.2.4")
def build_subc(ins: Decoded) -> Step:
    """subc{.cc}.type d, a, b: a - (b + CC.CF)."""
    return build_carry(ins, True, takes=True)

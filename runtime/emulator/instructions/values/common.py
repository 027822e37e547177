"""Binding of lane-wise instructions: read slots, apply one numpy function, write one slot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, merge
from ...ptx.operand_slots import Where
from ...ptx.registry import Step
from ...ptx.values import TYPES, Type

Function = Callable[..., np.ndarray]
"""Arrays of the operands' views in, an array of the result's size out."""


def result(function: Callable, slot: int | None) -> Step:
    """A step that writes `function(regs)` (an array of the register's dtype) to a slot."""
    if slot is None:
        return lambda warp, mask: None

    def step(warp, mask):
        regs = warp.regs
        value = function(regs)
        regs[slot] = value if mask is FULL else merge(regs[slot], value, mask)

    return step


def operand(ins: Decoded, where: Where, type_: Type) -> Callable:
    """A function regs → the operand viewed as its type says."""
    slot = ins.slot(where, type_)
    view = type_.dtype
    if view == ins.program.slot_dtype(slot):
        return lambda regs: regs[slot]
    return lambda regs: regs[slot].view(view)


def lanewise(ins: Decoded, types: list[Type], function: Function, out: Type | None = None) -> Step:
    """Bind `d, a, b, …`: d = function(a, b, …), operands viewed by `types`, d stored as `out`.

    `out` defaults to the first operand's type; the result is reinterpreted as its raw bits.
    """
    ins.finish_modifiers()
    ins.expect_operands(len(types) + 1)
    out = out or types[0]
    target = ins.target(0, out)
    _note(ins, types, function, out, target)
    if all(type_.dtype == type_.raw for type_ in types):
        return _raw(ins, types, function, out, target)
    return _viewed(ins, types, function, out, target)


def _note(
    ins: Decoded, types: list[Type], function: Function, out: Type, target: int | None
) -> None:
    if target is None:
        return
    slots = tuple(ins.slot(number + 1, type_) for number, type_ in enumerate(types))
    views = [type_.dtype for type_ in types]

    def compute(*operands: np.ndarray) -> np.ndarray:
        seen = [each.view(view) for each, view in zip(operands, views, strict=True)]
        return function(*seen).view(out.raw)

    ins.note_lanewise(compute, slots, (target,))


def _raw(
    ins: Decoded, types: list[Type], function: Function, out: Type, target: int | None
) -> Step:
    slots = [ins.slot(number + 1, type_) for number, type_ in enumerate(types)]
    if len(slots) == 2 and isinstance(function, np.ufunc) and out.raw == types[0].raw:
        return _binary_ufunc(function, slots[0], slots[1], target)
    raw = out.raw
    return result(lambda regs: function(*[regs[slot] for slot in slots]).view(raw), target)


def _binary_ufunc(function: np.ufunc, a: int, b: int, target: int | None) -> Step:
    if target is None:
        return lambda warp, mask: None

    def step(warp, mask):
        regs = warp.regs
        value = function(regs[a], regs[b])
        regs[target] = value if mask is FULL else np.where(mask, value, regs[target])

    return step


def _viewed(
    ins: Decoded, types: list[Type], function: Function, out: Type, target: int | None
) -> Step:
    reads = [operand(ins, number + 1, type_) for number, type_ in enumerate(types)]
    raw = out.raw
    if len(reads) == 1:
        (a,) = reads
        return result(lambda regs: function(a(regs)).view(raw), target)
    if len(reads) == 2:
        a, b = reads
        return result(lambda regs: function(a(regs), b(regs)).view(raw), target)
    return result(lambda regs: function(*[read(regs) for read in reads]).view(raw), target)


def bit_type(bits: int) -> Type:
    """The untyped `.bN`."""
    return TYPES[f"b{bits}"]

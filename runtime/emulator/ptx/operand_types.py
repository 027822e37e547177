"""Which registers and constants an instruction's type takes (PTX ISA §9.4, operand types; §4.5).

`.bN` takes every register of its size, `.uN` and `.sN` take each other's and untyped ones, `.fN`
takes its own and untyped ones, packed and alternate floats take untyped ones (§5.2.3, §5.2.5) and
no constants. An operand that is only known by its size takes registers of every type.
"""

from __future__ import annotations

import numpy as np

from . import syntax
from .values import TYPES, Type

_CLASSES = {"u": "integer", "s": "integer", "f": "float"}
MEMORY_KINDS = "bus"
"""Kinds of the types that `ld`, `st` and `mov` have, beside .f32 and .f64 (and `mov` .pred)."""


def clash(form: Type | np.dtype | int, register: Type) -> bool:
    """Whether a register's type is of another class than what an instruction reads or writes.

    form: the instruction's type; an operand that is only known by its size takes every class.
    """
    if not isinstance(form, Type):
        return False
    if form.kind == "x":
        return register.kind in _CLASSES
    wanted, got = _CLASSES.get(form.kind), _CLASSES.get(register.kind)
    if wanted is None or got is None:
        return False
    return wanted != got or (wanted == "float" and form.bits != register.bits)


def constant_clash(constant: syntax.Integer | syntax.Float, form: Type | np.dtype) -> bool:
    """Whether a constant is of another class: integers are no floats, nor floats integers.

    A float given by its bits (`0f…`, `0d…`) is an untyped constant of its size too, a decimal one
    has 64 bits. Packed and alternate floats have no constants.
    """
    if not isinstance(form, Type):
        return False
    if form.kind == "x":
        return True
    if isinstance(constant, syntax.Integer):
        return form.kind == "f"
    return form.kind in "us" or (form.kind == "b" and form.bits != constant.width)


def own_type(form: Type | np.dtype, modifiers: tuple[str, ...]) -> Type | np.dtype:
    """What to hold an operand to for which a builder asks by ``form``.

    Builders ask for `.bN` where they want the bits of a float: then the instruction's type counts
    if it has one, of this size.
    """
    if not isinstance(form, Type) or form.kind != "b" or form.name in modifiers:
        return form
    named = [TYPES[name] for name in modifiers if name in TYPES]
    return named[0] if len(named) == 1 and named[0].bits == form.bits else form.raw


def is_memory_type(form: Type) -> bool:
    """Whether `ld`, `st` and `mov` have the type: no packed ones, and no halves."""
    return form.kind in MEMORY_KINDS or form.name in ("f32", "f64")


def is_declarable(type_: Type, space: str) -> bool:
    """Whether a variable of a space may have the type; others only instructions have (§5.2.1)."""
    if type_.kind == "p":
        return space == "reg"
    return type_.kind != "x" or (type_.name == "f16x2" and space != "param")

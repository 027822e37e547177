"""Instructions that one lane executes as a call with plain numbers, beside those that compute.

A builder may say how its instruction is executed by a lone lane: what is called, and the values
that the call takes, as expressions over register slots. `lane_trace` calls it without registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import syntax
from .decode import Decoded
from .operand_slots import Where
from .values import TYPES


class LaneValue(NamedTuple):
    """A number: a Python expression over the raw bits of a slot, which stand for ``{0}``; -1 for
    one of no slot."""

    slot: int
    text: str = "{0}"


NOTHING = LaneValue(-1, "None")
"""An operand that is not there."""


class LaneForm(NamedTuple):
    """call: takes (warp, lane, *values) and returns the raw bits of the result, or where it
    ``waits`` the signal of a step. target: the slot of the result; of a wait, a predicate that
    tells whether it was answered. follows: called instead where nothing but computing stands
    between this instruction and one of the same ``kind``, of the same lane."""

    call: Callable[..., Any]
    values: tuple[LaneValue, ...]
    target: int | None = None
    waits: bool = False
    kind: Any = None
    follows: Callable[..., Any] | None = None


def note_lane_form(
    ins: Decoded, call: Callable[..., Any], *values: LaneValue | None, **how: Any
) -> None:
    """Say how one lane executes the instruction, unless a value has no expression."""
    known = [value for value in values if value is not None]
    if ins.predicate is None and len(known) == len(values):
        ins.program.lane_forms[ins.pc] = LaneForm(call, tuple(known), **how)


def value_of(ins: Decoded, where: Where, dtype: type) -> LaneValue:
    """The number that `Decoded.read_lane` reads."""
    operand, kind = ins.operand(where), np.dtype(dtype)
    bits, text = 8 * kind.itemsize, "{0}"
    if isinstance(operand, syntax.SymbolOffset) and ins.scope.register(operand.name):
        slot = ins.slot(syntax.Symbol(operand.name), kind)
        text = f"({{0}} + {operand.offset} & {(1 << bits) - 1})"
    else:
        slot = ins.slot(where, kind)
    if kind.kind == "i":
        text = f"(({text} ^ {1 << bits - 1}) - {1 << bits - 1})"
    return LaneValue(slot, text)


def predicate_of(ins: Decoded, where: Where) -> LaneValue:
    """The truth that `Decoded.read_predicate` reads."""
    operand = ins.operand(where)
    if isinstance(operand, syntax.Negated):
        return LaneValue(ins.slot(operand.operand, TYPES["pred"]), "(not {0})")
    return LaneValue(ins.slot(where, np.dtype(bool)))


def address_of(ins: Decoded, where: Where) -> LaneValue | None:
    """The address that `Decoded.lane_address` reads; None of one that is a constant."""
    operand = ins.operand(where)
    assert isinstance(operand, syntax.Address)  # `lane_address` takes no other
    if not isinstance(operand.base, syntax.Symbol):
        return None
    register = ins.scope.register(operand.base.name)
    if register is None:
        symbol = syntax.SymbolOffset(operand.base.name, operand.offset)
        return LaneValue(ins.program.symbol_address(ins, symbol, 64))
    if not operand.offset:
        return LaneValue(register.slot)
    return LaneValue(register.slot, f"({{0}} + {operand.offset} & {(1 << register.bits) - 1})")

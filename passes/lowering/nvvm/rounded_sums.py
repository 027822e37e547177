"""Sums in registers with names, of which a cvt rounds two where they are.

    %sums = sm.pin                              llvm.inline_asm
    %low  = llvm.extractvalue %sums[0]            "cvt.rn.bf16x2.f32 $0, %sums0_1, %sums0_0;"
    %high = llvm.extractvalue %sums[1]     →
    %pair = vector.from_elements %low, %high
    arith.truncf %pair : vector<2xbf16>

A thread of a tile of 128x256 that is stored as it is has 128 sums, and LLVM takes a fifth of its
time for their copies. ptxas makes the same machine code.

The cvt stands where the rounding stood. So no MMA may come behind a pin in its block: it would
write the registers before they are read.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ...base import walk

Places = dict[ir.Value, int]
"""Where among the sums of a pin a scalar is from."""
Forms = dict[ir.Type, str]
"""How a cvt calls a pair of each type."""


class Rounding(NamedTuple):
    """The pair and the op that rounds it, and the places of its halves among the sums."""

    pair: ir.Operation
    op: ir.Operation
    low: int
    high: int


def round_in_place(op: sm.PinOp, registers: list[str]) -> bool:
    """Round the sums of a pin by an asm for each pair; False if something else is done with them.

    MMAs in front of the pin must have been lowered.
    """
    behind = walk(op.operation.parent, sm.WgmmaOp | sm.WgmmaOfRegistersOp)
    readers = [use.owner.operation for use in op.after.uses]
    if behind or any(reader.name != "llvm.extractvalue" for reader in readers):
        return False
    places: Places = {reader.results[0]: _position(reader) for reader in readers}
    halves = ir.BF16Type.get(), ir.F16Type.get()
    forms: Forms = {ir.VectorType.get([2], half): f"{half}x2" for half in halves}
    found = _roundings(places, forms)
    if found is None:
        return False
    for rounding in found:
        _round(rounding, registers, forms)
    for reader in readers:
        reader.erase()
    return True


def _position(reader: ir.Operation) -> int:
    (place,) = ir.DenseI64ArrayAttr(reader.attributes["position"])
    return place


def _roundings(places: Places, forms: Forms) -> list[Rounding] | None:
    """The roundings of the scalars; None if one is read otherwise."""
    found = []
    for value, low in places.items():
        for use in value.uses:
            pair = use.owner.operation
            op = _rounding_of(pair, forms)
            high = places.get(pair.operands[1]) if op is not None else None
            if op is None or high is None or pair.operands[0] not in places:
                return None
            if use.operand_number == 0:
                found.append(Rounding(pair, op, low, high))
    return found


def _rounding_of(pair: ir.Operation, forms: Forms) -> ir.Operation | None:
    """The op that rounds two scalars, if that is all that is done with them."""
    if pair.name != "vector.from_elements":
        return None
    users = [use.owner.operation for use in pair.results[0].uses]
    if len(users) != 1 or users[0].name != "arith.truncf" or users[0].results[0].type not in forms:
        return None
    return users[0]


def _round(rounding: Rounding, registers: list[str], forms: Forms) -> None:
    pair, op, low, high = rounding
    given = op.results[0]
    text = f"cvt.rn.{forms[given.type]}.f32 $0, {registers[high]}, {registers[low]};"
    with ir.InsertionPoint(op), op.location:
        made = llvm.inline_asm(given.type, [], text, "=r", has_side_effects=True)
    given.replace_all_uses_with(made)
    op.erase()
    pair.erase()

"""Accumulators that only MMAs and pins use, in PTX registers with names of our own.

    %slot = llvm.alloca x struct       →  ".reg .b32 %sums0_<64>;"
    load %slot  sm.wgmma …  store      →  "wgmma.mma_async … {%sums0_0, %sums0_1, …}, …;"
    load %slot  sm.pin                 →  "mov.b32 $0, %sums0_0; …", and LLVM has their values

MLIR and LLVM then go through none of the sums until the MMAs are done: a thread of two 64x128 MMAs
has 128 of them, which every asm would take and give, and every loop hand on. ptxas sees the same
registers either way.

A slot qualifies if each MMA adds to what the slot holds and leaves its sums there. Sums that
threads add to, scale or share out keep their stack slots.
"""

from __future__ import annotations

import re
from typing import Any

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ...base import operations_named
from ..registers.register_accumulator import element_and_count

MULTIPLIES = ("sm.wgmma", "sm.wgmma_of_registers")
LETTERS = {"llvm.load": "l", "sm.pin": "p", **dict.fromkeys(MULTIPLIES, "m")}
"""What ops that read a slot's values are called in an order; a store is an s."""
IN_PLACE = re.compile("(lp|lm+s)*")
"""Loads, pins, MMAs and stores of a slot, in the order of a block, where no value of the slot is
needed after the one that takes its place."""

Named = dict[ir.Value, list[str]]
"""The registers of each slot that has names."""


def named_sums(kernel: Any) -> Named:
    """Names for the slots of a kernel that qualify, and their registers declared."""
    slots = [op for op in operations_named(kernel, "llvm.alloca") if _holds_registers(op)]
    touches = {slot.result: _touches(slot.result) for slot in slots}
    kept = _in_place(kernel, {slot: each for slot, each in touches.items() if each is not None})
    return {slot: _declared(slot, f"%sums{number}_") for number, slot in enumerate(kept)}


def names_of(value: ir.Value, named: Named) -> list[str] | None:
    """The registers of the slot that a value was loaded from, if they have names."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.load":
        return None
    return named.get(owner.operands[0])


def copied(op: sm.PinOp, registers: list[str]) -> ir.Value:
    """What a pin gives: copies of the registers, which LLVM can't make before this point."""
    element, count = element_and_count(op.before.type)
    letter = "r" if isinstance(element, ir.IntegerType) else "f"
    moves = [f"mov.b32 ${number}, {name};" for number, name in enumerate(registers)]
    constraints = ",".join([f"={letter}"] * count)
    text = llvm.ASM_LINES.join(moves)
    return llvm.inline_asm(op.before.type, [], text, constraints, has_side_effects=True)


def erase_slots(named: Named) -> None:
    """Drop the loads and stores of slots that have names, and the slots."""
    for slot in named:
        touching = [use.owner.operation for use in slot.uses]
        for operation in sorted(touching, key=lambda each: each.name == "llvm.load"):
            operation.erase()
        ir.OpResult(slot).owner.erase()


def _declared(slot: ir.Value, prefix: str) -> list[str]:
    alloca = ir.OpResult(slot).owner.operation
    _, count = element_and_count(_held(alloca))
    with ir.InsertionPoint(alloca), alloca.location:
        llvm.asm_statement(f".reg .b32 {prefix}<{count}>;")
    return [f"{prefix}{index}" for index in range(count)]


def _holds_registers(alloca: ir.Operation) -> bool:
    return str(_held(alloca)).startswith("!llvm.struct")


def _held(alloca: ir.Operation) -> ir.Type:
    return ir.TypeAttr(alloca.attributes["elem_type"]).value


def _touches(slot: ir.Value) -> dict[ir.Operation, str] | None:
    """A letter for each op that has a value of the slot; None if another op has one."""
    found: dict[ir.Operation, str] = {}
    pending = [use.owner.operation for use in slot.uses]
    while pending:
        op = pending.pop()
        letter = _letter(op, slot)
        if letter is None:
            return None
        found[op] = letter
        if letter in "lm":
            uses = list(op.results[0].uses)
            if len(uses) != 1 or uses[0].operand_number != 0:
                return None
            pending.append(uses[0].owner.operation)
    return found


def _letter(op: ir.Operation, slot: ir.Value) -> str | None:
    if op.name == "llvm.store":
        return "s" if op.operands[1] == slot else None
    return LETTERS.get(op.name)


def _in_place(kernel: Any, touches: dict[ir.Value, dict[ir.Operation, str]]) -> list[ir.Value]:
    """The slots with MMAs whose touches are in such an order in each block."""
    of_ops = {op: (slot, letter) for slot, ops in touches.items() for op, letter in ops.items()}
    orders: dict[ir.Value, dict[ir.Block, str]] = {slot: {} for slot in touches}
    for op in operations_named(kernel, *LETTERS, "llvm.store"):
        if op in of_ops:
            slot, letter = of_ops[op]
            orders[slot][op.block] = orders[slot].get(op.block, "") + letter
    return [
        slot
        for slot, ops in touches.items()
        if "m" in ops.values() and all(map(IN_PLACE.fullmatch, orders[slot].values()))
    ]

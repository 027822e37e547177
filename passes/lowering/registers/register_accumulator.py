"""Accumulators in registers of the warpgroups that issue the MMAs.

The warpgroups share the rows of an [M, N] accumulator, as many to each in order. One thread holds
a stack slot for each MMA down its rows; register i of it is the thread's value i of the MMA's
fragment (`places.COLUMNS`).
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ....dialects.tile_types import AccumulatorType
from ... import build
from ...places import ATOM_M


def stack_slots(type_: AccumulatorType, warpgroups: int) -> list[ir.Value]:
    """New slots, at the current insertion point; what they hold is undefined.

    LLVM's mem2reg makes registers of those in the first block.
    """
    struct = struct_of_type(type_)
    count = type_.shape[0] // warpgroups // ATOM_M
    return [llvm.alloca(build.pointer(), build.constant(1), struct) for _ in range(count)]


def struct_of_type(type_: AccumulatorType) -> ir.Type:
    """The registers of an MMA, as a struct."""
    return struct_of(type_.element, type_.shape[1] // 2)


def struct_of(element: ir.Type, count: int) -> ir.Type:
    """`!llvm.struct<"<element>x<count>", (element × count)>`.

    By its name LLVM IR says the type at every extractvalue; the members, 64 words, would be nine
    tenths of the text.
    """
    members = ", ".join([str(element)] * count)
    return ir.Type.parse(f'!llvm.struct<"{element}x{count}", ({members})>')


def parts(struct: ir.Value) -> list[ir.Value]:
    """The members of such a struct, which are all of one type.

    Those of a stack slot are loaded one by one, where the struct was: SROA would make of the whole
    one a chain of insertvalues, each of which IPSCCP goes through member by member.
    """
    element, count = element_and_count(struct.type)
    loaded = struct.owner
    if isinstance(loaded, ir.Block) or loaded.name != "llvm.load":
        return [llvm.extractvalue(element, struct, index) for index in range(count)]
    with ir.InsertionPoint(loaded):
        return _loaded_parts(loaded.operands[0], struct.type, element, count)


def element_and_count(struct: ir.Type) -> tuple[ir.Type, int]:
    """The type of the members of such a struct, and how many it has."""
    members = str(struct).partition("(")[2].partition(")")[0].split(", ")
    return ir.Type.parse(members[0]), len(members)


def _loaded_parts(slot: ir.Value, struct: ir.Type, element: ir.Type, count: int) -> list[ir.Value]:
    places = [llvm.member_pointer(slot, struct, index) for index in range(count)]
    return [llvm.load(element, place) for place in places]


def pinned(registers: ir.Value) -> ir.Value:
    """The same registers, once the instruction that fills them has been waited for."""
    return sm.PinOp.of(registers, after=registers.type).after


def split_registers(registers: ir.Value, count: int) -> list[ir.Value]:
    """The registers of an MMA as those of `count` narrower ones, from its first column on."""
    if count == 1:
        return [registers]
    held = parts(registers)
    width = len(held) // count
    struct = struct_of(held[0].type, width)
    starts = range(0, len(held), width)
    return [joined_parts(struct, held[start : start + width]) for start in starts]


def joined_registers(several: list[ir.Value], struct: ir.Type) -> ir.Value:
    """The other way round."""
    if len(several) == 1:
        return several[0]
    return joined_parts(struct, [part for each in several for part in parts(each)])


def joined_parts(struct: ir.Type, values: list[ir.Value]) -> ir.Value:
    """The registers of an MMA, a struct of that type."""
    held = llvm.undef(struct)
    for index, value in enumerate(values):
        held = llvm.insertvalue(held, value, index)
    return held

"""One instruction's operands as parsed, and the register slots that they name.

Operands are named by index, or given as operand objects of `syntax.py` (an element of a vector, a
part of a pair).
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..errors import Trap
from . import syntax
from .modifiers import Modifiers
from .operand_types import clash, constant_clash, own_type
from .program import Program
from .scope import Register, Scope
from .values import RAW, Type

Where = int | syntax.Operand


SINK = "_"
SPECIAL_READERS = ("mov", "cvt")
"""Instructions that may name a special register (PTX ISA §10)."""
SINK_TAKERS = ("atom", "mbarrier", "setp", "call")
"""Instructions whose only result may be `_`; elements and pairs may be so elsewhere (§6.4.2)."""
ADDRESS_READERS = ("mov", "cvta", "mapa", "getctarank", "call")
"""Instructions that may name a variable for its address (PTX ISA §6.4, §6.6)."""
WIDEST = 64
"""Bits of a register that may be wider than what is loaded, stored or converted."""
FLOAT_BITS = (16, 32, 64)
"""Of which there are decimal constants."""


class OperandSlots(Modifiers):
    """An instruction under construction.

    opcode: the full dotted opcode; mnemonic: the registered prefix; modifiers: the pieces after
    it; operands: as parsed; line, text: source; predicate: the guard or None (already applied to
    every step's mask); program: the kernel being decoded; pc: the instruction's index.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        source: syntax.Instruction,
        pc: int,
        mnemonic: str,
        section: str,
        modifiers: tuple[str, ...],
    ):
        super().__init__(mnemonic, modifiers)
        self.program, self.scope, self.pc = program, scope, pc
        self.opcode = source.opcode
        self.operands = tuple(_spread(scope, operand) for operand in source.operands)
        self.line, self.text, self.predicate = source.line, source.text, source.guard
        self.section = section
        self._unread = set(range(len(self.operands)))
        self._reads, self._writes = set[int](), set[int]()

    # -- refusals ----------------------------------------------------------------------------

    def unmodelled(self, reason: str) -> NoReturn:
        """Refuse the instruction: it is legal PTX, perhaps, but not modelled."""
        raise self.trap("unmodelled", f"{reason} (PTX ISA section {self.section})")

    def trap(self, category: str, message: str) -> Trap:
        """A Trap that already knows kernel, line and text, for refusals at decode time."""
        trap = Trap(category, message)
        return trap.locate(kernel=self.program.entry, line=self.line, text=self.text)

    # -- operands ----------------------------------------------------------------------------

    def expect_operands(self, *counts: int) -> None:
        """Refuse the instruction unless it has one of these numbers of operands."""
        self._unread.clear()
        if len(self.operands) not in counts:
            self.unmodelled(f"{len(self.operands)} operands")

    def finish(self) -> None:
        """Refuse the instruction if its builder has not read all of it."""
        self.finish_modifiers()
        if self._unread:
            raise self.trap("operand", f"operand {min(self._unread) + 1} is one too many")
        self.program.registers[self.pc] = frozenset(self._reads), frozenset(self._writes)

    def operand(self, where: Where) -> syntax.Operand:
        """The operand object at an index (an object is returned as it is)."""
        if not isinstance(where, int):
            return where
        if where >= len(self.operands):
            raise self.trap("operand", f"operand {where + 1} is missing")
        self._unread.discard(where)
        return self.operands[where]

    def name(self, where: Where) -> str:
        """The name that an operand is: of a label, list, function or variable."""
        operand = self.operand(where)
        if not isinstance(operand, syntax.Symbol):
            raise self.trap("operand", "a name is expected here")
        return operand.name

    def operand_is_immediate(self, where: Where) -> bool:
        return isinstance(self.operand(where), syntax.Integer | syntax.Float)

    def immediate(self, where: Where) -> int:
        """The value of an operand that must be an integer constant."""
        operand = self.operand(where)
        if not isinstance(operand, syntax.Integer):
            self.unmodelled("an operand that is not an integer constant")
        return operand.value

    def natural(self, where: Where) -> int:
        """The value of an operand that must be an integer constant of at least 0."""
        value = self.immediate(where)
        if value < 0:
            raise self.trap("operand", f"a constant of at least 0 is expected, got {value}")
        return value

    def bound_constant(self, where: Where, least: int, most: int) -> None:
        """Refuse the operand if it is a constant beyond these bounds."""
        operand = self.operand(where)
        if isinstance(operand, syntax.Integer) and not least <= operand.value <= most:
            raise self.trap("operand", f"a constant from {least} to {most} is expected, got"
                                       f" {operand.value}")  # fmt: skip

    def is_sink(self, where: Where) -> bool:
        """Is the operand `_`?"""
        return self.operand(where) == syntax.Symbol(SINK)

    def elements(self, where: Where, count: int | None = None) -> tuple[syntax.Operand, ...]:
        """The elements of a vector operand (a bare operand counts as one)."""
        operand = self.operand(where)
        found = operand.elements if isinstance(operand, syntax.Vector) else (operand,)
        if count is not None and len(found) != count:
            self.unmodelled(f"a vector of {len(found)} elements where {count} are expected")
        self._check_widths(found)
        return found

    def _check_widths(self, elements: tuple[syntax.Operand, ...]) -> None:
        """The registers of a vector have one size (PTX ISA §6.4.3)."""
        named = [each.name for each in elements if isinstance(each, syntax.Symbol)]
        found = {register.bits for name in named if (register := self.scope.register(name))}
        if len(found) > 1:
            raise self.trap("type", "the registers of a vector must have one size, got"
                                    f" {' and '.join(map(str, sorted(found)))} bits")  # fmt: skip

    def slot(self, where: Where, type_: Type | np.dtype, *, relaxed: bool = False) -> int:
        """The index into `warp.regs` of an operand that is read: register or constant.

        The array there has the raw (unsigned) dtype of the operand's own width, which is the
        width of `type_` unless `relaxed` (ld, st, cvt: the register may be wider).
        """
        operand = self.operand(where)
        bits = type_.bits if isinstance(type_, Type) else type_bits(type_)
        if isinstance(operand, syntax.Symbol):
            return self._symbol_slot(operand, type_, relaxed)
        if (
            isinstance(operand, syntax.Float)
            and isinstance(where, int)
            and not isinstance(type_, Type)
        ):
            raise self.trap("type", "an operand of integer type cannot be a floating constant")
        if isinstance(operand, syntax.Integer | syntax.Float):
            return self.program.constant(self._constant_bits(operand, type_), bits)
        if isinstance(operand, syntax.SymbolOffset):
            if self.scope.register(operand.name):
                self.unmodelled("a register with an offset here")
            return self._variable_slot(operand, bits)
        if isinstance(operand, syntax.Negated):
            self.unmodelled("a negated predicate here")
        return self.unmodelled("this kind of operand here")

    def _symbol_slot(self, operand: syntax.Symbol, type_: Type | np.dtype, relaxed: bool) -> int:
        register = self.scope.register(operand.name)
        if register is None:
            bits = type_.bits if isinstance(type_, Type) else type_bits(type_)
            return self._other_slot(operand, bits)
        self.note_read(register)
        return self._fitting(operand.name, register, type_, relaxed)

    def note_read(self, register: Register) -> None:
        """The instruction reads this register."""
        self._reads.add(register.slot)

    def _fitting(
        self, name: str, register: Register, form: Type | np.dtype | int, relaxed: bool
    ) -> int:
        """The slot of a register that an instruction of this type, or size, may name."""
        if isinstance(form, int):
            bits = form
        else:
            bits = form.bits if isinstance(form, Type) else type_bits(form)
        if register.bits != bits and not (relaxed and WIDEST >= register.bits > bits > 1):
            self._width_mismatch(name, register.bits, bits)
        if not isinstance(form, int) and clash(
            own := own_type(form, self.modifiers), register.type
        ):
            raise self.trap("type", f"operand {name} must fit .{own.name} here, got a register of"
                                    f" type .{register.type.name}")  # fmt: skip
        return register.slot

    def _other_slot(self, operand: syntax.Symbol, bits: int) -> int:
        special = self.program.special(operand.name)
        if special is not None and self.mnemonic.partition(".")[0] not in SPECIAL_READERS:
            raise self.trap("operand", f"special register {operand.name} can be read by"
                                       f" {' and '.join(SPECIAL_READERS)} only")  # fmt: skip
        if special is None:
            return self._variable_slot(syntax.SymbolOffset(operand.name), bits)
        slot, width = special
        if slot is None:
            self.unmodelled(f"special register {operand.name} outside mov")
        if width != bits:
            self._width_mismatch(operand.name, width, bits)
        return slot

    def _variable_slot(self, symbol: syntax.SymbolOffset, bits: int) -> int:
        """The slot of a variable's address, in an instruction that may name one."""
        slot = self.program.symbol_address(self, symbol, bits)
        if self.mnemonic.partition(".")[0] not in ADDRESS_READERS:
            raise self.trap("operand", f"{symbol.name} is a variable; a register or a constant is"
                                       " expected here")  # fmt: skip
        return slot

    def _width_mismatch(self, name: str, bits: int, wanted: int) -> NoReturn:
        raise self.trap(
            "type", f"operand {name} must have {wanted} bits here, got a register of {bits} bits"
        )

    def _constant_bits(self, operand: syntax.Integer | syntax.Float, type_: Type | np.dtype) -> int:
        if constant_clash(operand, own := own_type(type_, self.modifiers)):
            what = "an integer" if isinstance(operand, syntax.Integer) else "a floating"
            raise self.trap("type", f"an operand of type .{own.name} cannot be {what} constant")
        if isinstance(operand, syntax.Integer):
            return operand.value
        bits = type_.bits if isinstance(type_, Type) else type_bits(type_)
        if operand.width == bits:
            return operand.bits
        if bits not in FLOAT_BITS:
            raise self.trap("type", f"a decimal constant cannot have {bits} bits")
        value = np.array([operand.bits], RAW[operand.width]).view(f"f{operand.width // 8}")
        return int(value.astype(f"f{bits // 8}").view(RAW[bits])[0])

    def target(self, where: Where, form: int | Type, *, relaxed: bool = False) -> int | None:
        """The register slot that is written, None for the sink `_`; form: its bits or its type."""
        operand = self.operand(where)
        if self.is_sink(operand):
            if isinstance(where, int) and self.mnemonic.partition(".")[0] not in SINK_TAKERS:
                raise self.trap("operand", "a result that cannot be `_`")
            return None
        register = self.scope.register(operand.name) if isinstance(operand, syntax.Symbol) else None
        if register is None or not isinstance(operand, syntax.Symbol):
            self.unmodelled("a destination that is not a register")
        self._writes.add(register.slot)
        return self._fitting(operand.name, register, form, relaxed)


def _spread(scope: Scope, operand: syntax.Operand) -> syntax.Operand:
    """The elements of a vector register in its place."""
    if not isinstance(operand, syntax.Symbol):
        return operand
    return scope.vector(operand.name) or operand


def type_bits(dtype: np.dtype) -> int:
    """Bits of a register that holds this dtype: 1 for bool."""
    return 1 if dtype == np.bool_ else dtype.itemsize * 8

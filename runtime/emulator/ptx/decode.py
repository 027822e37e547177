"""One instruction as its builder sees it: operands turned into closures, modifiers consumed.

Operands are named by index, or given as operand objects of `ptx.py` (an element of a vector, a
part of a pair). Reading yields arrays that must not be written to: registers share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..errors import Trap, lane_text
from ..interface import Warp
from . import syntax
from .accesses import MemoryAccess
from .lanes import FULL, WARP_SIZE, first_lane, lanes_to_int
from .modifiers import Modifiers
from .operand_types import clash, constant_clash, own_type
from .program import Program
from .register_writes import Write, register_write
from .registry import Blocked
from .scope import Register, Scope
from .values import RAW, TYPES, Type

Read = Callable[["Warp"], np.ndarray]
Where = int | syntax.Operand

SINK = "_"
SPECIAL_READERS = ("mov", "cvt")
"""Instructions that may name a special register (PTX ISA §10)."""
SINK_TAKERS = ("atom", "mbarrier", "setp", "call")
"""Instructions whose only result may be `_`; elements and pairs may be so elsewhere (§6.4.2)."""
ADDRESS_READERS = ("mov", "cvta", "mapa", "getctarank", "call")
"""Instructions that may name a variable for its address (PTX ISA §6.4, §6.6)."""
WIDE_ADDRESSES = ("ld", "ldu", "st", "atom", "red", "discard", "applypriority")
SHORT_SPACES = ("shared", "local", "param", "const")
WIDEST = 64
"""Bits of a register that may be wider than what is loaded, stored or converted."""
FLOAT_BITS = (16, 32, 64)
"""Of which there are decimal constants."""


class Decoded(Modifiers):
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
        return self._fitting(operand.name, register, type_, relaxed)

    def _fitting(
        self, name: str, register: Register, form: Type | np.dtype | int, relaxed: bool
    ) -> int:
        """The slot of a register that an instruction of this type, or size, may name."""
        bits = form if isinstance(form, int) else getattr(form, "bits", None) or type_bits(form)
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

    def read(self, where: Where, dtype: Type | np.dtype | type, *, relaxed: bool = False) -> Read:
        """A function warp → array[32] of `dtype` (a numpy dtype, or a `Type` for its view).

        Reads a register, an immediate, a special register, the address of a variable or, as
        ptxas does, a register plus a constant. A wider register is truncated when `relaxed`.
        """
        operand = self.operand(where)
        if isinstance(operand, syntax.SymbolOffset) and self.scope.register(operand.name):
            return self._register_plus(operand, np.dtype(dtype))
        type_ = dtype if isinstance(dtype, Type) else np.dtype(dtype)
        view = dtype.dtype if isinstance(dtype, Type) else np.dtype(dtype)
        slot = self.slot(where, type_, relaxed=relaxed)
        own = self.program.slot_dtype(slot)
        if own == view:
            return lambda warp: warp.regs[slot]
        if own.itemsize == view.itemsize:
            return lambda warp: warp.regs[slot].view(view)
        narrow = RAW[view.itemsize * 8]
        return lambda warp: warp.regs[slot].astype(narrow).view(view)

    def _register_plus(self, operand: syntax.SymbolOffset, view: np.dtype) -> Read:
        slot = self.slot(syntax.Symbol(operand.name), view)
        own = self.program.slot_dtype(slot)
        constant = own.type(operand.offset & (1 << 8 * own.itemsize) - 1)
        return lambda warp: (warp.regs[slot] + constant).view(view)

    def read_vector(
        self,
        where: Where,
        count: int | None,
        dtype: Type | np.dtype | type,
        *,
        relaxed: bool = False,
    ) -> Callable[[Warp], list[np.ndarray]]:
        """A function warp → list of arrays[32], one for each element of a vector operand."""
        reads = [
            self.read(element, dtype, relaxed=relaxed) for element in self.elements(where, count)
        ]
        return lambda warp: [read(warp) for read in reads]

    def read_predicate(self, where: Where) -> Read:
        """A function warp → bool[32]; the operand may be `p` or `!p`."""
        operand = self.operand(where)
        if not isinstance(operand, syntax.Negated):
            return self.read(operand, np.bool_)
        slot = self.slot(operand.operand, TYPES["pred"])
        return lambda warp: ~warp.regs[slot]

    def read_uniform(
        self, where: Where, dtype: Type | np.dtype | type, what: str
    ) -> Callable[[Warp, np.ndarray], int]:
        """A function (warp, mask) → Python number that all lanes of the mask must agree on.

        `what` names the operand in the Trap (category convergence) when they do not.
        """
        read = self.read(where, dtype)

        def uniform(warp: Warp, mask: np.ndarray) -> int:
            values = read(warp)
            first = values[first_lane(mask)]
            if ((values != first) & mask).any():
                raise Trap(
                    "convergence",
                    f"{what} must be the same in all lanes, got"
                    f" {sorted(set(values[mask].tolist()))[:4]}",
                )
            return first.item()

        return uniform

    def target(self, where: Where, form: int | Type, *, relaxed: bool = False) -> int | None:
        """The register slot that is written, None for the sink `_`; form: its bits or its type."""
        operand = self.operand(where)
        if self.is_sink(operand):
            if isinstance(where, int) and self.mnemonic.partition(".")[0] not in SINK_TAKERS:
                raise self.trap("operand", "a result that cannot be `_`")
            return None
        if not isinstance(operand, syntax.Symbol) or not self.scope.register(operand.name):
            self.unmodelled("a destination that is not a register")
        return self._fitting(operand.name, self.scope.register(operand.name), form, relaxed)

    def write(self, where: Where, dtype: Type | np.dtype | type, *, relaxed: bool = False) -> Write:
        """A function (warp, mask, values[32] of `dtype`) that writes the lanes of the mask.

        A wider register (`relaxed`: ld, cvt) gets the value sign- or zero-extended by `dtype`.
        The array passed in must not be changed afterwards.
        """
        view = dtype.dtype if isinstance(dtype, Type) else np.dtype(dtype)
        form = dtype if isinstance(dtype, Type) else type_bits(view)
        slot = self.target(where, form, relaxed=relaxed)
        if slot is None:
            return lambda warp, mask, values: None
        return register_write(slot, self.program.slot_dtype(slot), view)

    def write_vector(
        self,
        where: Where,
        count: int | None,
        dtype: Type | np.dtype | type,
        *,
        relaxed: bool = False,
    ) -> Callable[[Warp, np.ndarray, Any], None]:
        """A function (warp, mask, values) that writes values[j] (array[32]) to element j."""
        writes = [
            self.write(element, dtype, relaxed=relaxed) for element in self.elements(where, count)
        ]

        def write_all(warp: Warp, mask: np.ndarray, values: Any) -> None:
            for write, value in zip(writes, values, strict=True):
                write(warp, mask, value)

        return write_all

    def address(self, where: Where) -> Read:
        """A function warp → uint64[32] of a `[base+offset]` operand, in the units of its space.

        The base may be a 32- or 64-bit register, a variable or an integer. Addresses of 32-bit
        registers are zero-extended after the offset is added. Extra items in the brackets
        (tensor coordinates) are in `ins.operand(where).coordinates`.
        """
        operand = self.operand(where)
        if not isinstance(operand, syntax.Address):
            self.unmodelled("an operand that is not an address")
        if not isinstance(operand.base, syntax.Symbol):
            return self._constant_address(operand.base, operand.offset)
        register = self.scope.register(operand.base.name)
        if register is None:
            symbol = syntax.SymbolOffset(operand.base.name, operand.offset)
            slot = self.program.symbol_address(self, symbol, 64)
            return lambda warp: warp.regs[slot]
        if register.type.kind not in "bus":
            raise self.trap("type", f"an address cannot be in {operand.base.name}, a register of"
                                    f" type .{register.type.name}")  # fmt: skip
        return self._register_address(register.slot, register.bits, operand.offset)

    def _constant_address(self, base: syntax.Integer | syntax.Float, offset: int) -> Read:
        if not isinstance(base, syntax.Integer):
            raise self.trap("type", "an address cannot be a floating constant")
        if "local" not in self.modifiers:
            raise self.trap("operand", "an address that is a constant is for .local alone")
        constant = _constant_address(base.value + offset)
        return lambda warp: constant

    def _register_address(self, slot: int, bits: int, offset: int) -> Read:
        self._check_address_bits(bits)
        if bits == 32:
            step = np.uint32(offset & 0xFFFFFFFF)
            return lambda warp: (warp.regs[slot] + step).astype(np.uint64)
        if bits != 64:
            self.unmodelled(f"an address in a register of {bits} bits")
        if offset == 0:
            return lambda warp: warp.regs[slot]
        wide = np.uint64(offset & 0xFFFFFFFFFFFFFFFF)
        return lambda warp: warp.regs[slot] + wide

    def _check_address_bits(self, bits: int) -> None:
        """Generic and .global addresses have 64 bits (`.address_size`, PTX ISA §11.1.3), those of
        tensor memory 32 (§9.7.16.1)."""
        family, _, rest = self.mnemonic.partition(".")
        if bits == 64 and family == "tcgen05" and rest not in ("alloc", "commit"):
            raise self.trap("type", "an address of tensor memory needs a register of 32 bits")
        short = any(name.startswith(SHORT_SPACES) for name in self.modifiers)
        wide = family == "mbarrier" or self.mnemonic in WIDE_ADDRESSES
        if bits == 32 and wide and not short:
            raise self.trap("type", "a generic or .global address needs a register of 64 bits")

    def note_access(self, access: MemoryAccess) -> None:
        """Say what the instruction moves, for profiles."""
        self.program.accesses[self.pc] = access

    # -- convergence -------------------------------------------------------------------------

    def whole_warp(self) -> Callable[[Warp, np.ndarray], Blocked | None]:
        """For `.aligned` instructions: a check to call first in the step.

        `blocked = check(warp, mask)`: None when every live lane of the warp is in the mask, else
        what the step must return (`if blocked: return blocked`); the lanes then wait, and if the
        others can never come the launch ends with a Trap of category convergence. Live lanes that
        the instruction's own guard leaves out are such a Trap at once.
        """
        blocked = Blocked(
            "convergence",
            lambda: "all live lanes of the warp must execute this .aligned instruction together",
        )

        def check(warp: Warp, mask: np.ndarray) -> Blocked | None:
            if mask is FULL or not (missing := warp.missing(mask)):
                warp.launch.events.converged(warp)
                return None
            if skipped := missing & lanes_to_int(warp.split.mask):
                raise Trap(
                    "convergence",
                    f"the guard of this .aligned instruction leaves out lanes {lane_text(skipped)}",
                )
            return blocked

        return check


def _spread(scope: Scope, operand: syntax.Operand) -> syntax.Operand:
    """The elements of a vector register in its place."""
    if not isinstance(operand, syntax.Symbol):
        return operand
    return scope.vector(operand.name) or operand


def type_bits(dtype: np.dtype) -> int:
    """Bits of a register that holds this dtype: 1 for bool."""
    return 1 if dtype == np.bool_ else dtype.itemsize * 8


def _constant_address(value: int) -> np.ndarray:
    return np.full(WARP_SIZE, value & 0xFFFFFFFFFFFFFFFF, np.uint64)

"""One instruction as its builder sees it: operands turned into closures, modifiers consumed.

Reading yields arrays that must not be written to: registers share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import Trap, lane_text
from ..interface import Warp
from ..truth import any_of
from . import syntax
from .accesses import MemoryAccess
from .lanes import FULL, WARP_SIZE, first_lane, lanes_to_int
from .lanewise import Lanewise
from .operand_slots import OperandSlots, Where, type_bits
from .register_writes import Write, register_write
from .registry import Blocked
from .values import RAW, TYPES, Type

Read = Callable[["Warp"], np.ndarray]


WIDE_ADDRESSES = ("ld", "ldu", "st", "atom", "red", "discard", "applypriority")
SHORT_SPACES = ("shared", "local", "param", "const")


class Decoded(OperandSlots):
    """An instruction under construction; its attributes are those of `OperandSlots`."""

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
            if any_of((values != first) & mask):
                raise Trap(
                    "convergence",
                    f"{what} must be the same in all lanes, got"
                    f" {sorted(set(values[mask].tolist()))[:4]}",
                )
            return first.item()

        return uniform

    def read_lane(self, where: Where, dtype: Type | np.dtype | type) -> Callable[[Warp, int], int]:
        """A function (warp, lane) → Python number, for what a single lane executes."""
        read, view = self.read(where, dtype), dtype.dtype if isinstance(dtype, Type) else dtype
        slot = self._plain_register(where, np.dtype(view))
        if slot is not None:
            return lambda warp, lane: warp.regs[slot].item(lane)
        return lambda warp, lane: read(warp).item(lane)

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
        elements = self.elements(where, count)
        writes = [self.write(element, dtype, relaxed=relaxed) for element in elements]
        view = dtype.dtype if isinstance(dtype, Type) else np.dtype(dtype)
        slots = [self._plain_register(element, view) for element in elements]
        if None not in slots:
            return _write_slots(slots, writes)

        def write_all(warp: Warp, mask: np.ndarray, values: Any) -> None:
            for write, value in zip(writes, values, strict=True):
                write(warp, mask, value)

        return write_all

    def _plain_register(self, where: Where, view: np.dtype) -> int | None:
        """The slot of a register that holds values of the view as they are, None of others."""
        operand = self.operand(where)
        register = self.scope.register(operand.name) if isinstance(operand, syntax.Symbol) else None
        plain = register is not None and self.program.slot_dtype(register.slot) == view
        return register.slot if register is not None and plain else None

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
        self.note_read(register)
        return self._register_address(register.slot, register.bits, operand.offset)

    def lane_address(self, where: Where) -> Callable[[Warp, int], int]:
        """The same for a single lane: a function (warp, lane) → Python integer."""
        read, operand = self.address(where), self.operand(where)
        assert isinstance(operand, syntax.Address)  # `address` takes no other
        base = operand.base
        register = self.scope.register(base.name) if isinstance(base, syntax.Symbol) else None
        if register is None:
            return lambda warp, lane: read(warp).item(lane)
        slot, offset, mask = register.slot, operand.offset, (1 << register.bits) - 1
        return lambda warp, lane: warp.regs[slot].item(lane) + offset & mask

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

    def note_lanewise(
        self, function: Callable | None, reads: tuple[int, ...], writes: tuple[int, ...]
    ) -> None:
        """Say that the instruction does nothing but compute these slots; see `Lanewise`."""
        self.note_computing(reads, writes)
        if self.predicate is None:
            key = self.opcode, *(self._form_of(operand) for operand in self.operands)
            self.program.lanewise[self.pc] = Lanewise(key, function, reads, writes)

    def note_computing(self, reads: tuple[int, ...], writes: tuple[int, ...]) -> None:
        """Say that the instruction does nothing but compute these slots, of up to 64 bits, in each
        lane from its own."""
        if self.predicate is None:
            self.program.computing[self.pc] = reads, writes

    def _form_of(self, operand: syntax.Operand) -> Any:
        """What of an operand may decide on what the instruction does: all but which register."""
        if isinstance(operand, syntax.Vector):
            return tuple(self._form_of(element) for element in operand.elements)
        register = isinstance(operand, syntax.Symbol) and self.scope.register(operand.name)
        return register.bits if register else operand

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
                return None
            if skipped := missing & lanes_to_int(warp.split.mask):
                raise Trap(
                    "convergence",
                    f"the guard of this .aligned instruction leaves out lanes {lane_text(skipped)}",
                )
            return blocked

        return check


def _write_slots(slots: list, writes: list[Write]) -> Callable[[Warp, np.ndarray, Any], None]:
    """Writes of registers that whole warps replace as they are."""

    def write_all(warp: Warp, mask: np.ndarray, values: Any) -> None:
        if mask is FULL:
            regs = warp.regs
            for slot, value in zip(slots, values, strict=True):
                regs[slot] = value
            return
        for write, value in zip(writes, values, strict=True):
            write(warp, mask, value)

    return write_all


def _constant_address(value: int) -> np.ndarray:
    return np.full(WARP_SIZE, value & 0xFFFFFFFFFFFFFFFF, np.uint64)

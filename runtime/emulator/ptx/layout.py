"""Where variables live: module variables, shared memory, per-thread frames, parameters.

Source: PTX ISA §5.4 (variables, alignment, initialisers), §5.1.7 (shared, dynamic `.extern`).
"""

from __future__ import annotations

import numpy as np

from ..errors import Trap
from . import syntax
from .addresses import CODE_BASE, CONST_WINDOW, GLOBAL_BASE, SHARED_FIRST_OFFSET
from .values import RAW, TYPES, Type

GUARD_BYTES = 4096
"""Unmapped bytes between two module variables."""
CODE_STEP = 128
"""Bytes between the addresses of two functions."""
MAX_MODULE_BYTES = 4 * 2**30
"""All `.global` and `.const` variables of a module together: a bound on the host's memory."""
MAX_LOCAL_BYTES = 512 * 2**10
"""Local memory of a thread (CUDA C++ Programming Guide, technical specifications)."""
MAX_PARAM_BYTES = 32_764
"""Parameters of a kernel or function (PTX ISA §5.1.6)."""
MAX_STATIC_BYTES = 48 * 2**10
"""Shared memory in variables with a size; more is dynamic (CUDA C++ Programming Guide)."""
MAX_SHARED_BYTES = 232_448
"""Shared memory one CTA may use, static and dynamic (227 KiB)."""


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def variable_type(variable: syntax.Variable) -> Type:
    if variable.type not in TYPES:
        raise Trap("unmodelled", f"a variable of type .{variable.type}").locate(line=variable.line)
    if TYPES[variable.type].bits == 1:
        raise Trap("type", "a variable must not be of type .pred").locate(line=variable.line)
    return TYPES[variable.type]


def variable_size(variable: syntax.Variable) -> int:
    """The bytes of a variable; 0 for an unsized array."""
    size = max(variable_type(variable).bits // 8, 1) * variable.vector
    for extent in variable.dims:
        size *= extent
    return size


def variable_alignment(variable: syntax.Variable) -> int:
    natural = max(variable_type(variable).bits // 8, 1) * variable.vector
    return variable.align or natural


class FrameLayout:
    """Variables one behind the other: kernel parameters, or the per-thread memory.

    what, limit: names the memory in the Trap for more than so many bytes.
    """

    def __init__(self, what: str, limit: int):
        self._what, self._limit = what, limit
        self.size = 0
        self.placed: list[tuple[syntax.Variable, int]] = []

    def add(self, variable: syntax.Variable) -> int:
        """Place a variable; returns its offset."""
        offset = align_up(self.size, variable_alignment(variable))
        self.size = offset + variable_size(variable)
        if self.size > self._limit:
            raise _too_large(variable, self._what, self._limit, self.size)
        self.placed.append((variable, offset))
        return offset


def _too_large(variable: syntax.Variable, what: str, limit: int, size: int) -> Trap:
    return Trap(
        "out-of-bounds",
        f"{what} must have at most {limit} bytes, got {size} with variable {variable.name}",
    ).locate(line=variable.line)


class SharedLayout:
    """The shared variables a kernel refers to: static ones first, then the dynamic ones.

    Offsets are window offsets and start at 0x400. All `.extern` arrays start at the same place.
    """

    def __init__(self, module: syntax.Module):
        self._variables: dict[str, syntax.Variable] = {}
        self.offsets: dict[str, int] = {}
        self.dynamic_offset = self.static_end = SHARED_FIRST_OFFSET

    def reference(self, variable: syntax.Variable) -> None:
        """Note that the kernel uses `variable`."""
        self._variables.setdefault(variable.name, variable)

    def finish(self) -> None:
        """Assign the offsets once every reference is known."""
        static = [v for v in self._variables.values() if not v.extern]
        dynamic = [v for v in self._variables.values() if v.extern]
        end = SHARED_FIRST_OFFSET
        for variable in static:
            self.offsets[variable.name] = align_up(end, variable_alignment(variable))
            end = self.offsets[variable.name] + variable_size(variable)
            if end - SHARED_FIRST_OFFSET > MAX_STATIC_BYTES:
                used = end - SHARED_FIRST_OFFSET
                raise _too_large(variable, "static shared memory", MAX_STATIC_BYTES, used)
        self.static_end = end
        alignment = max([variable_alignment(v) for v in dynamic], default=16)
        self.dynamic_offset = align_up(end, alignment)
        for variable in dynamic:
            self.offsets[variable.name] = self.dynamic_offset

    @property
    def static_bytes(self) -> int:
        return self.static_end - SHARED_FIRST_OFFSET


class FunctionAddresses:
    """The addresses of a module's functions, for indirect calls."""

    def __init__(self, module: syntax.Module):
        self._names = [name for name, each in module.functions.items() if not each.is_entry]

    def address(self, name: str) -> int | None:
        """The address of a function; None if the module has none of this name."""
        if name not in self._names:
            return None
        return CODE_BASE + CODE_STEP * (1 + self._names.index(name))

    def name(self, address: int) -> str | None:
        """The function at an address; None if there is none."""
        number, rest = divmod(address - CODE_BASE, CODE_STEP)
        return self._names[number - 1] if not rest and 1 <= number <= len(self._names) else None


class GlobalVariables:
    """Module variables in `.global` and `.const`: addresses and initial bytes."""

    def __init__(self, module: syntax.Module):
        self.functions = FunctionAddresses(module)
        self.declared = {variable.name: variable for variable in module.variables}
        self._addresses: dict[str, int] = {}
        self._next = {"global": GLOBAL_BASE, "const": CONST_WINDOW + GUARD_BYTES}
        self._total = 0
        for variable in module.variables:
            if variable.space in self._next and not variable.extern:
                self._place(variable)

    @property
    def end(self) -> int:
        """The first `.global` address behind all module variables."""
        return self._next["global"]

    def _place(self, variable: syntax.Variable) -> None:
        at = align_up(self._next[variable.space], max(256, variable_alignment(variable)))
        self._total += variable_size(variable)
        if self._total > MAX_MODULE_BYTES:
            raise _too_large(variable, "the variables of a module", MAX_MODULE_BYTES, self._total)
        self._addresses[variable.name] = at
        self._next[variable.space] = align_up(at + variable_size(variable) + GUARD_BYTES, 256)

    def address(self, name: str) -> int:
        """The (generic) address of a module variable or function."""
        if (function := self.functions.address(name)) is not None:
            return function
        if name not in self._addresses:
            raise Trap("unmodelled", f"variable {name} is declared .extern and defined nowhere")
        return self._addresses[name]

    def initial_symbols(self) -> set[str]:
        """The variables and functions whose addresses initialisers contain."""
        operands = [each for v in self.declared.values() for each in v.initializer or ()]
        return {
            each.name for each in operands if isinstance(each, syntax.Symbol | syntax.SymbolOffset)
        }

    def placed(self) -> list[tuple[syntax.Variable, int]]:
        return [(self.declared[name], at) for name, at in self._addresses.items()]

    def initial_bytes(self, variable: syntax.Variable) -> np.ndarray:
        """uint8 contents at launch: the initialiser, zero behind it and without one."""
        data = np.zeros(variable_size(variable), np.uint8)
        type_ = variable_type(variable)
        size = type_.bits // 8
        for position, operand in enumerate(variable.initializer or ()):
            value = self._initial_value(operand, type_) & (1 << type_.bits) - 1
            raw = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
            data[position * size : (position + 1) * size] = raw
        return data

    def _initial_value(self, operand: syntax.Initial, type_: Type) -> int:
        if isinstance(operand, syntax.Integer):
            return operand.value
        if isinstance(operand, syntax.Float):
            if type_.dtype.kind != "f" and type_.bits not in (16, 32, 64):
                raise Trap("type", f"a decimal cannot initialise a .{type_.name}")
            wide = np.array([operand.bits], RAW[operand.width]).view(f"f{operand.width // 8}")
            return int(wide.astype(f"f{type_.bits // 8}").view(RAW[type_.bits])[0])
        if isinstance(operand, syntax.Symbol):
            return self.address(operand.name)
        value = self.address(operand.name) + operand.offset
        if operand.mask is None:
            return value
        shift = (operand.mask & -operand.mask).bit_length() - 1
        return (value & operand.mask) >> shift

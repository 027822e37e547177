"""A kernel ready to run: flat code, numbered registers, laid-out variables.

The entry and every function that it calls become one list of instructions, whose names are
resolved; `binding.decode` binds each of them once. A program holds nothing of a launch and may be
run many times.
"""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

import numpy as np

from ..errors import Trap
from . import syntax
from .accesses import MemoryAccess
from .call_graph import find_recursive
from .lanes import LANE_IDS, WARP_SIZE
from .layout import (
    MAX_LOCAL_BYTES,
    MAX_PARAM_BYTES,
    FrameLayout,
    GlobalVariables,
    SharedLayout,
    variable_size,
)
from .scope import FunctionCode, Placed, Register, Scope
from .specials import FIXED, MOVING
from .values import RAW, TYPES, Type

MAX_REGISTERS = 1 << 17
"""That a kernel and its functions may declare: each warp of the emulator holds them all."""
VECTOR_SUFFIXES = "xyzw"
LANE_SHIFT = 24
"""Addresses of per-thread memory carry the lane above this bit."""


class Occurrence(Protocol):
    """One instruction as its builder sees it (`decode.Decoded`)."""

    scope: Scope

    def trap(self, category: str, message: str) -> Trap: ...
    def unmodelled(self, reason: str) -> NoReturn: ...


class Program:
    """code: (step, guard slot or None, guard negated) by pc; source: the instruction by pc;
    accesses: what threads' instructions move, by pc; text: the PTX, "" where it is not known;
    computing: the slots that instructions read and write which do nothing but compute registers of
    each lane from its own, by pc; lanewise: what some of them compute; lane_forms: how one lane
    executes others (`lane_forms`); branches: targets of `bra`, by pc; stretches, recalls, traces:
    by pc the `lanewise.Stretch`, `recall.Recall` and `lane_trace.Trace` that start there, or None;
    mentions: see `mentions`; flows: by pc, see `flows`; registers: by pc, those
    that are read, without the guard, and those that are written; live, unwritten: see
    `unwritten`."""

    def __init__(self, module: syntax.Module, function: syntax.Function):
        self.text = ""
        self.module, self.function = module, function
        self.entry = function.name
        self.code: list[tuple] = []
        self.source: list[syntax.Instruction] = []
        self.globals = GlobalVariables(module)
        self.shared = SharedLayout(module)
        self.frame = FrameLayout("the local memory of a thread", MAX_LOCAL_BYTES)
        self.params = FrameLayout("the parameters of a kernel", MAX_PARAM_BYTES)
        self.constants: dict[int, np.ndarray] = {}
        self.poisoned: dict[int, int] = {}
        self.special_slots: dict[int, str] = {}
        self.shared_slots: dict[int, tuple[str, int]] = {}
        self.accesses: dict[int, MemoryAccess] = {}
        self.lanewise: dict[int, Any] = {}
        self.computing: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.stretches: list[Any] = []
        self.recalls: list[Any] = []
        self.traces: list[Any] = []
        self.lane_forms: dict[int, Any] = {}
        self.branches: dict[int, int] = {}
        self.mentions: Any = None
        self.flows: dict[int, Any] = {}
        self.registers: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self.live: list[int] | None = None
        self.unwritten: list[int] | None = None
        self._dtypes: list[np.dtype] = []
        self._constant_slots: dict[tuple, int] = {}
        self._special_by_name: dict[str, int] = {}
        self._shared_by_place: dict[tuple[str, int, int], int] = {}
        self._functions: dict[str, FunctionCode] = {}
        self._scopes: list[Scope] = []
        self._carry: Register | None = None

    # -- register slots ----------------------------------------------------------------------

    @property
    def slot_count(self) -> int:
        return len(self._dtypes)

    def slot_dtype(self, slot: int) -> np.dtype:
        """The dtype of the array that a register slot holds."""
        return self._dtypes[slot]

    def _new_slot(self, dtype: np.dtype) -> int:
        self._dtypes.append(dtype)
        return len(self._dtypes) - 1

    def new_register(self, type_: Type) -> Register:
        """A fresh register, poisoned at the start."""
        slot = self._new_slot(RAW[type_.bits])
        self.poisoned[slot] = type_.bits
        return Register(slot, type_.bits, type_)

    def constant(self, value: int, bits: int) -> int:
        """The slot of a constant, truncated to `bits`."""
        value &= (1 << bits) - 1
        key = (value, bits)
        if key not in self._constant_slots:
            words = [value] if bits < 128 else [value & (1 << 64) - 1, value >> 64]
            array = np.array(words * WARP_SIZE).astype(RAW[bits])
            self._constant_slots[key] = self.array_slot(
                array.reshape(WARP_SIZE, -1).squeeze(1) if bits < 128 else array.reshape(-1, 2)
            )
        return self._constant_slots[key]

    def array_slot(self, array: np.ndarray) -> int:
        """A slot that holds the same array in every warp."""
        slot = self._new_slot(array.dtype)
        array.flags.writeable = False
        self.constants[slot] = array
        return slot

    def carry_slot(self) -> int:
        """The slot of the condition code CC.CF."""
        if self._carry is None:
            self._carry = self.new_register(TYPES["pred"])
        return self._carry.slot

    def special(self, name: str) -> tuple[int | None, int] | None:
        """(slot, bits) of a special register; slot None if it moves; None if there is none."""
        if name in MOVING:
            return None, MOVING[name][0]
        if name not in FIXED:
            return None
        bits = FIXED[name][0]
        if name not in self._special_by_name:
            slot = self._new_slot(RAW[bits])
            self._special_by_name[name] = slot
            self.special_slots[slot] = name
        return self._special_by_name[name], bits

    # -- variables ---------------------------------------------------------------------------

    def place(self, ins: Occurrence, name: str) -> Placed:
        """Where the variable `name` lives, as seen from an instruction; Trap if undeclared."""
        placed = ins.scope.variable(name)
        if placed is not None:
            return placed
        variable = self.globals.declared.get(name)
        if variable is None:
            raise ins.trap("undeclared", f"`{name}` is neither a register nor a variable")
        return Placed(variable.space, variable, None)

    def symbol_address(self, ins: Occurrence, symbol: syntax.SymbolOffset, bits: int) -> int:
        """The slot that holds the address of a variable in its own space."""
        if bits not in (32, 64):
            raise ins.trap("type", f"the address of {symbol.name} needs 32 or 64 bits")
        if ins.scope.variable(symbol.name) is None and self.has_body(symbol.name):
            self.known_function(ins, symbol.name)
            return self.constant(self.globals.address(symbol.name), bits)
        placed = self.place(ins, symbol.name)
        if placed.space == "shared":
            return self._shared_slot(placed.variable, symbol.offset, bits)
        if placed.space in ("global", "const"):
            return self.constant(self.globals.address(symbol.name) + symbol.offset, bits)
        assert placed.offset is not None  # of other spaces, all have places
        if placed.space == "param":
            return self.constant(placed.offset + symbol.offset, bits)
        base = LANE_IDS.astype(RAW[bits]) << RAW[bits].type(LANE_SHIFT)
        return self.array_slot(base + RAW[bits].type(placed.offset + symbol.offset))

    def _shared_slot(self, variable: syntax.Variable, offset: int, bits: int) -> int:
        self.shared.reference(variable)
        key = variable.name, offset, bits
        if key not in self._shared_by_place:
            slot = self._shared_by_place[key] = self._new_slot(RAW[bits])
            self.shared_slots[slot] = (variable.name, offset)
        return self._shared_by_place[key]

    # -- functions ---------------------------------------------------------------------------

    def has_body(self, name: str) -> bool:
        """Whether the module itself defines the function."""
        function = self.module.functions.get(name)
        return function is not None and function.body is not None

    def function_code(self, ins: Occurrence, name: str) -> FunctionCode:
        """The code of a called function, flattened at its first call; Trap if it has no body."""
        ins.scope.function.calls.add(name)
        return self.known_function(ins, name)

    def known_function(self, ins: Occurrence, name: str) -> FunctionCode:
        """The same for a function that an indirect call may reach."""
        if name not in self._functions:
            if not self.has_body(name):
                ins.unmodelled(f"a call of {name}, which has no body in this module")
            self._functions[name] = self._flatten(self.module.functions[name])
        return self._functions[name]

    def addressed_functions(self, ins: Occurrence) -> None:
        """Flatten the functions whose addresses variables hold, for an indirect call."""
        for name in sorted(self.globals.initial_symbols()):
            if self.has_body(name):
                self.known_function(ins, name)

    def function_at(self, address: int) -> FunctionCode | None:
        """The code of the function at an address, if the kernel knows it."""
        return self._functions.get(self.globals.functions.name(address) or "")

    def reached_from(self, code: FunctionCode) -> set[str]:
        """A function and those that its direct calls reach."""
        found, waiting = set(), [code.function.name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._functions[name].calls
        return found

    def function_of(self, pc: int) -> FunctionCode:
        """The function that an instruction belongs to."""
        return self._scopes[pc].function

    def _flatten(self, function: syntax.Function) -> FunctionCode:
        code = FunctionCode(function, len(self.source))
        code.scope = Scope(code)
        for parameter in (*function.params, *function.returns):
            self._declare_parameter(code.scope, parameter)
        assert function.body is not None  # declarations have no code
        self._flatten_block(function.body, code.scope)
        self._append(syntax.Instruction("ret", (), None, function.line, "}"), code.scope)
        return code

    def _declare_parameter(
        self, scope: Scope, parameter: syntax.Variable | syntax.Registers
    ) -> None:
        if isinstance(parameter, syntax.Registers):
            self._declare_registers(scope, parameter)
        elif scope.function.is_entry:
            self._name(scope, parameter.name, parameter.line)
            offset = self.params.add(parameter)
            scope.variables[parameter.name] = Placed("param", parameter, offset)
        else:
            self._declare_variable(scope, parameter)

    def _flatten_block(self, block: syntax.Block, whole: Scope) -> None:
        scope, first = whole, len(self.source)
        for statement in block.statements:
            if isinstance(statement, syntax.Block):
                self._flatten_block(statement, Scope(scope.function, scope))
            elif isinstance(statement, syntax.Instruction):
                self._append(statement, scope)
            elif isinstance(statement, syntax.Label):
                self._declare_label(whole, statement)
            else:
                if len(self.source) > first:
                    scope, first = Scope(whole.function, scope, whole.lines), len(self.source)
                self._declare(scope, statement)

    def _append(self, instruction: syntax.Instruction, scope: Scope) -> None:
        self.source.append(instruction)
        self._scopes.append(scope)

    def _name(self, scope: Scope, name: str, line: int) -> None:
        """Note a declaration; Trap if the block has one of this name."""
        if name in scope.lines:
            raise Trap(
                "duplicate", f"`{name}` is declared in ptx:{scope.lines[name]} in the same block"
            ).locate(kernel=self.entry, line=line)
        scope.lines[name] = line

    def _declare_label(self, scope: Scope, label: syntax.Label) -> None:
        self._name(scope, label.name, label.line)
        if label.targets is not None:
            scope.tables[label.name] = label.targets
        else:
            scope.labels[label.name] = len(self.source)

    def _declare(self, scope: Scope, statement: syntax.Registers | syntax.Variable) -> None:
        if isinstance(statement, syntax.Registers):
            self._declare_registers(scope, statement)
        else:
            self._declare_variable(scope, statement)

    def _declare_registers(self, scope: Scope, registers: syntax.Registers) -> None:
        if registers.type not in TYPES:
            raise Trap("unmodelled", f"registers of type .{registers.type}").locate(
                kernel=self.entry, line=registers.line
            )
        type_ = TYPES[registers.type]
        declared = registers.vector * sum(
            1 if count is None else count for _, count in registers.names
        )
        if len(self.poisoned) + declared > MAX_REGISTERS:
            raise Trap(
                "unmodelled", f"more than {MAX_REGISTERS} registers, got {declared} here"
            ).locate(kernel=self.entry, line=registers.line)
        for name, count in registers.names:
            names = [name] if count is None else [f"{name}{i}" for i in range(count)]
            for each in names:
                self._name(scope, each, registers.line)
                if registers.vector == 1:
                    scope.registers[each] = self.new_register(type_)
                else:
                    self._declare_vector(scope, each, type_, registers.vector)

    def _declare_vector(self, scope: Scope, name: str, type_: Type, count: int) -> None:
        """A vector register: `name.x` is `name.r` too, and so on (PTX ISA §5.4.2)."""
        names = [f"{name}.{suffix}" for suffix in VECTOR_SUFFIXES[:count]]
        for each, colour in zip(names, "rgba", strict=False):
            scope.registers[each] = scope.registers[f"{name}.{colour}"] = self.new_register(type_)
        scope.vectors[name] = syntax.Vector(tuple(syntax.Symbol(each) for each in names))

    def _declare_variable(self, scope: Scope, variable: syntax.Variable) -> None:
        self._name(scope, variable.name, variable.line)
        space = {"param": "call-param"}.get(variable.space, variable.space)
        if space in ("call-param", "local"):
            scope.variables[variable.name] = Placed(space, variable, self.frame.add(variable))
        elif space == "shared":
            scope.variables[variable.name] = Placed(space, variable, None)
        else:
            raise Trap("unmodelled", f"a .{space} variable inside a function").locate(
                kernel=self.entry, line=variable.line
            )

    def flatten_entry(self) -> None:
        """The code of the kernel itself; functions follow as they are called."""
        self._functions[self.entry] = self._flatten(self.function)

    def refuse_recursion(self) -> None:
        """Trap if a function calls itself."""
        name = find_recursive({name: code.calls for name, code in self._functions.items()})
        if name is not None:
            message = f"function {name} calls itself, recursion is not modelled"
            line = self._functions[name].function.line
            raise Trap("unmodelled", message).locate(kernel=self.entry, line=line)

    def labelled(self) -> set[int]:
        """The instructions behind labels."""
        scopes = {id(scope): scope for scope in self._scopes}.values()
        return {pc for scope in scopes for pc in scope.labels.values()}

    def scope_of(self, pc: int) -> Scope:
        """The names that the instruction at a pc sees."""
        return self._scopes[pc]

    def parameter_sizes(self) -> list[tuple[syntax.Variable, int, int]]:
        """(variable, offset, bytes) of each kernel parameter."""
        return [
            (variable, offset, variable_size(variable)) for variable, offset in self.params.placed
        ]

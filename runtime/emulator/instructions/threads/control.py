"""bra, brx, call, ret, exit, trap and other control flow (PTX ISA §9.7.12, §9.7.19)."""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...machine.system_calls import SYSTEM_CALLS
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import merge
from ...ptx.layout import variable_size
from ...ptx.registry import CONTROL, JUMP, SWITCH, Step, instruction
from ...ptx.scope import FunctionCode, Placed


def _target(ins: Decoded, name: str) -> int:
    pc = ins.scope.label(name)
    if pc is None:
        raise ins.trap("undeclared", f"label {name} is not declared in this function")
    return pc


@instruction("bra", section="9.7.12.3")
def build_bra(ins: Decoded) -> Step:
    """@p bra{.uni} label."""
    ins.flag("uni")
    ins.finish_modifiers()
    ins.expect_operands(1)
    target = ins.program.branches[ins.pc] = _target(ins, ins.name(0))

    def step(warp, mask):
        split = warp.split
        if mask is split.mask:
            split.pc = target
            return JUMP
        warp.branch(mask, target)
        return CONTROL

    return step


@instruction("brx.idx", section="9.7.12.4")
def build_brx(ins: Decoded) -> Step:
    """@p brx.idx{.uni} index, list: jump to the label with this number."""
    ins.flag("uni")
    ins.finish_modifiers()
    ins.expect_operands(2)
    names = ins.scope.table(ins.name(1))
    if names is None:
        raise ins.trap("undeclared", f"{ins.name(1)} is not a .branchtargets list")
    targets = [_target(ins, name) for name in names]
    read = ins.read(0, np.uint32)

    def step(warp, mask):
        index = read(warp)
        if (index[mask] >= len(targets)).any():
            raise Trap(
                "out-of-bounds",
                f"branch index must be below {len(targets)}, got {int(index[mask].max())}",
            )
        warp.scatter(
            mask,
            [
                (targets[value], mask & (index == value))
                for value in np.unique(index[mask]).tolist()
            ],
        )
        return CONTROL

    return step


@instruction("call", section="9.7.12.5")
def build_call(ins: Decoded) -> Step:
    """call{.uni} (results), function, (arguments){, list or prototype}."""
    ins.flag("uni")
    ins.finish_modifiers()
    _check_call(ins)
    groups = [operand for operand in ins.operands if isinstance(operand, syntax.Group)]
    names = [operand.name for operand in ins.operands if isinstance(operand, syntax.Symbol)]
    if not names:
        raise ins.trap("operand", "a call needs a function or a register with its address")
    leading = isinstance(ins.operand(0), syntax.Group)
    results = groups[0].elements if leading else ()
    arguments = groups[leading].elements if len(groups) > leading else ()
    if ins.scope.register(names[0]) is not None:
        return _indirect_call(ins, names, results, arguments)
    if names[0] in SYSTEM_CALLS and not ins.program.has_body(names[0]):
        return _system_call(ins, names[0], results, arguments)
    callee = ins.program.function_code(ins, names[0])
    bring = _copies(ins, callee, arguments, callee.function.params, inward=True)
    fetch = _copies(ins, callee, results, callee.function.returns, inward=False)
    return _call_step(callee.pc, bring, fetch)


_CALL_ENDS = ([], [syntax.Group], [syntax.Symbol], [syntax.Group, syntax.Symbol])


def _check_call(ins: Decoded) -> None:
    """`(results), function, (arguments), list`: at most these, in this order."""
    kinds = [type(operand) for operand in ins.operands]
    leading = kinds[:1] == [syntax.Group]
    target, *behind = kinds[leading:] or [None]
    if target is not syntax.Symbol or behind not in _CALL_ENDS:
        raise ins.trap("operand", "a call is `(results), function, (arguments), list`")
    ins.expect_operands(len(kinds))


def _call_step(target: int, bring: tuple, fetch: tuple) -> Step:
    def step(warp, mask):
        for copy in bring:
            copy(warp, mask)
        warp.call(mask, target, fetch)
        return CONTROL

    return step


def _indirect_call(ins: Decoded, names: list[str], results: tuple, arguments: tuple) -> Step:
    """names: the register, and the .calltargets or .callprototype label behind the arguments."""
    listed = ins.scope.table(names[1]) if len(names) == 2 else None
    if listed is None:
        raise ins.trap("operand", "an indirect call needs a .calltargets or .callprototype label")
    for name in listed:
        ins.program.known_function(ins, name)
    ins.program.addressed_functions(ins)
    read = ins.read(syntax.Symbol(names[0]), np.uint64)
    copies: dict[str, tuple[tuple, tuple]] = {}

    def bind(callee: FunctionCode) -> tuple[tuple, tuple]:
        name = callee.function.name
        if name not in copies:
            bring = _copies(ins, callee, arguments, callee.function.params, inward=True)
            copies[name] = (
                bring,
                _copies(ins, callee, results, callee.function.returns, inward=False),
            )
        return copies[name]

    def step(warp, mask):
        addresses, targets = read(warp), []
        for address in np.unique(addresses[mask]).tolist():
            callee, lanes = _callee(warp, address), mask & (addresses == address)
            bring, fetch = bind(callee)
            for copy in bring:
                copy(warp, lanes)
            targets.append((callee.pc, lanes, fetch))
        warp.call_several(mask, targets)
        return CONTROL

    return step


def _callee(warp, address: int) -> FunctionCode:
    """The function at an address; a Trap if there is none, or if it is being executed."""
    program, split = warp.program, warp.split
    callee = program.function_at(address)
    if callee is None:
        raise Trap("out-of-bounds", f"an indirect call of 0x{address:x}, where no function is")
    active, stack = {program.function_of(split.pc).function.name}, split.stack
    while stack:
        active.add(program.function_of(stack[0]).function.name)
        stack = stack[-1]
    if again := active & program.reached_from(callee):
        raise Trap("unmodelled", f"function {min(again)} calls itself, recursion is not modelled"
                                 f" (PTX ISA section 9.7.12.5)")  # fmt: skip
    return callee


def _system_call(ins: Decoded, name: str, results: tuple, arguments: tuple) -> Step:
    perform, count = SYSTEM_CALLS[name]
    if len(arguments) != count:
        raise ins.trap("type", f"{name} takes {count} arguments, got {len(arguments)}")
    sources = [_own_parameter(ins, operand) for operand in arguments]
    target = _own_parameter(ins, results[0]) if results else None

    def step(warp, mask):
        frames = warp.local.frames
        for lane in np.flatnonzero(mask).tolist():
            values = [int.from_bytes(frames[lane, span].tobytes(), "little") for span in sources]
            answer = perform(warp, lane, values)
            if target is not None:
                size = target.stop - target.start
                raw = answer.to_bytes(size, "little")
                frames[lane, target] = np.frombuffer(raw, np.uint8)

    return step


def _own_parameter(ins: Decoded, operand: syntax.Operand) -> slice:
    """The bytes of a .param variable of the caller in its frame."""
    placed = ins.program.place(ins, operand.name) if isinstance(operand, syntax.Symbol) else None
    if placed is None or placed.space != "call-param" or placed.offset is None:
        ins.unmodelled("an argument that is not a .param variable of the caller")
    return slice(placed.offset, placed.offset + variable_size(placed.variable))


def _copies(
    ins: Decoded, callee: FunctionCode, actual: tuple, formal: tuple, *, inward: bool
) -> tuple:
    if len(actual) != len(formal):
        raise ins.trap(
            "type",
            f"{callee.function.name} takes {len(callee.function.params)}"
            f" arguments and gives {len(callee.function.returns)} results",
        )
    return tuple(
        _copy(ins, callee, mine, theirs, inward)
        for mine, theirs in zip(actual, formal, strict=True)
    )


def _copy(
    ins: Decoded,
    callee: FunctionCode,
    mine: syntax.Operand,
    theirs: syntax.Variable | syntax.Registers,
    inward: bool,
):
    assert callee.scope is not None  # the callee has a body
    if isinstance(theirs, syntax.Registers):
        register = callee.scope.register(theirs.names[0][0])
        assert register is not None  # its declaration made it
        if inward:
            dtype = ins.program.slot_dtype(register.slot)
            return _copy_register(ins.slot(mine, dtype), register.slot)
        result = ins.target(mine, register.bits)
        return _copy_nothing if result is None else _copy_register(register.slot, result)
    placed = ins.program.place(ins, ins.name(mine))
    if placed.space != "call-param":
        ins.unmodelled(f"argument {ins.name(mine)} that is not a .param variable of the caller")
    inner = callee.scope.variable(theirs.name)
    assert inner is not None  # its declaration made it
    if variable_size(placed.variable) != variable_size(theirs):
        raise ins.trap(
            "type",
            f"{theirs.name} of {callee.function.name} has {variable_size(theirs)} bytes, got"
            f" {variable_size(placed.variable)} of {placed.variable.name}",
        )
    source, target = (placed, inner) if inward else (inner, placed)
    return _copy_memory(source, target, variable_size(theirs))


def _copy_register(source: int, target: int):
    def copy(warp, mask):
        regs = warp.regs
        regs[target] = merge(regs[target], regs[source], mask)

    return copy


def _copy_nothing(warp, mask) -> None:
    """For a result that nobody takes."""


def _copy_memory(source: Placed, target: Placed, size: int):
    start, end = source.offset, target.offset
    assert start is not None and end is not None  # .param variables of calls have places

    def copy(warp, mask):
        frames = warp.local.frames
        moved = frames[:, start : start + size][mask]
        frames[mask, end : end + size] = moved

    return copy


@instruction("ret", section="9.7.12.6")
def build_ret(ins: Decoded) -> Step:
    """ret{.uni}: back to the caller; in the entry function the lanes exit."""
    ins.flag("uni")
    ins.finish_modifiers()
    ins.expect_operands(0)
    if ins.scope.function.is_entry:
        return _exit_step

    def step(warp, mask):
        for copy in warp.split.stack[1]:
            copy(warp, mask)
        warp.leave(mask)
        return CONTROL

    return step


def _exit_step(warp, mask):
    warp.exit_lanes(mask)
    return CONTROL


@instruction("exit", section="9.7.12.7")
def build_exit(ins: Decoded) -> Step:
    """exit: the lanes end."""
    ins.finish_modifiers()
    ins.expect_operands(0)
    return _exit_step


@instruction("trap", section="9.7.19.4")
def build_trap(ins: Decoded) -> Step:
    """trap: the launch stops."""
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp, mask):
        raise Trap("trap", "the kernel executed trap")

    return step


@instruction("brkpt", "pmevent", section="9.7.19")
def build_nothing(ins: Decoded) -> Step:
    """Debugging hints without effect here."""
    ins.flag("mask")
    ins.finish_modifiers()
    ins.expect_operands(0 if ins.mnemonic == "brkpt" else 1)
    return lambda warp, mask: None


@instruction("nanosleep", section="9.7.19.2")
def build_nanosleep(ins: Decoded) -> Step:
    """nanosleep.u32 t: let others run."""
    type_ = ins.take_type("u32")
    ins.finish_modifiers()
    ins.expect_operands(1)
    ins.read(0, type_)
    return lambda warp, mask: SWITCH

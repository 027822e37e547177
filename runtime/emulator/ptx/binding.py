"""From a parsed module to a kernel that can run: the registry binds each instruction once."""

from __future__ import annotations

import re

from ..errors import LaunchError, Trap
from . import registry, syntax
from .decode import Decoded
from .program import Program
from .requirements import unmet
from .values import TYPES

GROUP = re.compile(r"tcgen05\..*?\bcta_group::(\d)")


def bind_all(program: Program) -> None:
    """Flatten the entry and bind every instruction, callees included."""
    program.flatten_entry()
    while len(program.code) < len(program.source):
        program.code.append(_bind(program, len(program.code)))
    program.refuse_recursion()
    _check_groups(program)
    program.shared.finish()


def _check_groups(program: Program) -> None:
    """All tcgen05 instructions of a kernel have one .cta_group, those that nobody reaches, too
    (§9.7.16.7.1)."""
    first: dict[str, syntax.Instruction] = {}
    for each in program.source:
        if (group := GROUP.match(each.opcode)) is not None:
            first.setdefault(group[1], each)
    if len(first) > 1:
        (before, _), (group, each) = first.items()
        rule = "all tcgen05 instructions of a kernel must use the same .cta_group"
        raise Trap("tmem", f"{rule}, got {group} after {before}").locate(
            kernel=program.entry, line=each.line, text=each.text
        )


def _bind(program: Program, pc: int) -> tuple:
    source, scope = program.source[pc], program.scope_of(pc)
    found = registry.find(source.opcode)
    if found is None:
        raise Trap("unmodelled", _unknown(source.opcode)).locate(
            kernel=program.entry, line=source.line, text=source.text
        )
    if lacking := unmet(source.opcode, program.module, len(source.operands)):
        raise Trap("target", lacking).locate(
            kernel=program.entry, line=source.line, text=source.text
        )
    entry, modifiers = found
    ins = Decoded(program, scope, source, pc, entry.mnemonic, entry.section, modifiers)
    try:
        step = entry.build(ins)
        ins.finish()
    except Trap as trap:
        raise trap.locate(kernel=program.entry, line=ins.line, text=ins.text) from None
    if source.guard is None:
        return step, None, False
    return (
        step,
        ins.slot(syntax.Symbol(source.guard.register), TYPES["pred"]),
        source.guard.negated,
    )


def _unknown(opcode: str) -> str:
    section = registry.family_section(opcode)
    where = f"PTX ISA section {section}" if section else "PTX ISA section 9.7 has none of this name"
    return f"instruction {opcode} is not modelled ({where})"


def decode(module: syntax.Module, entry: str) -> Program:
    """Decode kernel `entry`; LaunchError if there is none, Trap for what is not modelled."""
    function = module.functions.get(entry)
    if function is None or not function.is_entry or function.body is None:
        kernels = [f.name for f in module.functions.values() if f.is_entry]
        raise LaunchError(
            f"the module has no kernel `{entry}`, it has {', '.join(kernels) or 'none'}"
        )
    program = Program(module, function)
    bind_all(program)
    return program

"""Finds the inner loop of each role in SASS, if a disassembler is installed.

nvdisasm and cuobjdump print the same instructions; nvdisasm names jump targets by labels, cuobjdump
by addresses. SASS is not documented: what is read here are mnemonics and jumps only.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from ..dialects.errors import CompileError
from ..dialects.record import record
from ..runtime.child import run_tool
from ..runtime.scratch import scratch_folder
from .control_flow import Instruction, Loop, innermost_loop

ROLES = {"tma": r"UTMALDG\b", "mma": r"UTC\w*MMA\b", "epilogue": r"LDTM\b"}
DISASSEMBLER_SECONDS = 300.0
PRINT_CODE = "--print-code"
CURE = "pip install 'nvidia-cuda-nvdisasm>=13.5.37,<13.6'"

_LINE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(@!?\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"\s*([.$\w]+):\s*$")
_START = re.compile(r"\s*(?:\.text\.([\w$]+):|Function\s*:\s*([\w$]+))")
_SECTION = re.compile(r"\s*\.section\s")
_NAMED = re.compile(r"(\.L_\w+)")
_ADDRESS = re.compile(r"\b0x([0-9a-f]+)\b")
_JUMPS = ("BRA", "BRX", "JMP", "JMX")
_LEAVES = ("EXIT", "RET", "KILL")


@record
class _Line:
    address: int
    guarded: bool
    opcode: str
    operands: str


def role_loops(sass: str, entry: str) -> dict[str, Loop | None]:
    """The inner loop of every role in kernel `entry`; None where the role has none."""
    program = parse_kernel(sass, entry)
    return {role: innermost_loop(program, pattern) for role, pattern in ROLES.items()}


def disassemble(cubin: bytes, with_lines: bool = False) -> str | None:
    """SASS text of a cubin, or None when no disassembler is installed.

    with_lines: with lines that say from where the instructions after them come, if the cubin has
        line information and the disassembler, as nvdisasm, can print it.

    Raises `CompileError` when the disassembler refuses the cubin.
    """
    command = find_disassembler()
    if command is None:
        return None
    if with_lines and PRINT_CODE in command:
        command = [*command, "--print-line-info"]
    with scratch_folder() as folder:
        (folder / "kernel.cubin").write_bytes(cubin)
        try:
            done = run_tool([*command, "kernel.cubin"], folder, DISASSEMBLER_SECONDS)
        except subprocess.TimeoutExpired as error:
            rule = f"must be done within {DISASSEMBLER_SECONDS:g} s, got no end"
            raise CompileError(f"{command[0]}: {rule}; {CURE}") from error
    if done.returncode != 0:
        reason = done.stderr.strip().partition("\n")[0]
        raise CompileError(f"{command[0]}: the cubin must disassemble, got: {reason}; {CURE}")
    return done.stdout


def find_disassembler() -> list[str] | None:
    """The command that prints a cubin's code: nvdisasm of its wheel, else one on PATH."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    places = [Path(folder) for folder in folders or ()]
    wheels = [found for place in places for found in sorted(place.glob("cu1*/bin/nvdisasm"))]
    nvdisasm = str(wheels[0]) if wheels else shutil.which("nvdisasm")
    if nvdisasm:
        return [nvdisasm, PRINT_CODE]
    cuobjdump = shutil.which("cuobjdump")
    return [cuobjdump, "-sass"] if cuobjdump else None


def parse_kernel(sass: str, entry: str) -> list[Instruction]:
    """The instructions of kernel `entry` with jumps resolved; `CompileError` without it."""
    lines, labels = _lines_of(sass, entry)
    if not lines:
        raise CompileError(f"sass: the text must hold the kernel '{entry}', got none")
    index_of = {line.address: index for index, line in enumerate(lines)}
    return [_instruction(index, lines, labels, index_of) for index in range(len(lines))]


def _lines_of(sass: str, entry: str) -> tuple[list[_Line], dict[str, int]]:
    lines: list[_Line] = []
    labels: dict[str, int] = {}
    inside = False
    for text in sass.splitlines():
        start = _START.match(text)
        if start:
            inside = (start[1] or start[2]) == entry
        elif _SECTION.match(text):
            inside = False
        elif inside and (found := _LINE.match(text)):
            operands = " ".join(found[4].split())
            lines.append(_Line(int(found[1], 16), bool(found[2]), found[3], operands))
        elif inside and (found := _LABEL.match(text)):
            labels[found[1]] = len(lines)
    return lines, {name: index for name, index in labels.items() if index < len(lines)}


def _instruction(
    index: int, lines: list[_Line], labels: dict[str, int], index_of: dict[int, int]
) -> Instruction:
    line = lines[index]
    text = f"{line.opcode} {line.operands}".strip()
    kind = line.opcode.split(".")[0]
    if kind in _LEAVES:
        return Instruction(text, (), falls_through=line.guarded)
    if kind in _JUMPS:
        conditional = line.guarded or _has_condition(line)
        return Instruction(text, _targets(line.operands, labels, index_of), conditional)
    if kind == "BSYNC":
        targets = _reconvergence(index, lines, labels, index_of)
        return Instruction(text, targets, falls_through=line.guarded or not targets)
    return Instruction(text)


def _has_condition(line: _Line) -> bool:
    """Whether a jump names a predicate or uniform register before its target."""
    return bool(re.match(r"[!~]?U?[PR]\w+\s*,", line.operands))


def _targets(operands: str, labels: dict[str, int], index_of: dict[int, int]) -> tuple[int, ...]:
    named = [labels[name] for name in _NAMED.findall(operands) if name in labels]
    if named:
        return tuple(named)
    addresses = [int(digits, 16) for digits in _ADDRESS.findall(operands)]
    return tuple(index_of[address] for address in addresses[-1:] if address in index_of)


def _reconvergence(
    index: int, lines: list[_Line], labels: dict[str, int], index_of: dict[int, int]
) -> tuple[int, ...]:
    """Where BSYNC meets: the target of the nearest BSSY above it on the same barrier register."""
    register = lines[index].operands.split(",")[0]
    for line in reversed(lines[:index]):
        if line.opcode.startswith("BSSY") and line.operands.split(",")[0] == register:
            return _targets(line.operands, labels, index_of)
    return ()

"""Finds the inner loop of each role in PTX.

A role's inner loop is the innermost loop around its characteristic instruction: a TMA load, an MMA,
a tensor-memory load.
"""

from __future__ import annotations

import re

from ..dialects.errors import CompileError
from ..dialects.record import record
from .control_flow import Instruction, Loop, innermost_loop

ROLES = {
    "tma": r"cp\.async\.bulk\.tensor\.\dd(\.cta_group::\d)?\.shared::",
    "mma": r"tcgen05\.mma\b",
    "epilogue": r"tcgen05\.ld\b",
}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_LABEL = re.compile(r"\s*([\w$%]+)\s*:(?!:)")
_SCOPE = re.compile(r"\s*[{}]")
_STATEMENT = re.compile(r"\s*([^;]*);")
_GUARD = re.compile(r"@!?[\w$%]+\s+")
_LEAVES = ("ret", "exit", "trap")


@record
class _Statement:
    text: str
    guarded: bool


def role_loops(ptx: str, entry: str) -> dict[str, Loop | None]:
    """The inner loop of every role in kernel `entry`; None where the role has none.

    Raises `CompileError` when the text has no such kernel.
    """
    program = parse_kernel(ptx, entry)
    return {role: innermost_loop(program, pattern) for role, pattern in ROLES.items()}


def parse_kernel(ptx: str, entry: str) -> list[Instruction]:
    """The instructions of kernel `entry`, directives left out and labels resolved."""
    statements, labels, tables = _statements(_body(_COMMENT.sub(" ", ptx), entry))
    return [_instruction(statement, labels, tables) for statement in statements]


def _body(ptx: str, entry: str) -> str:
    """The text between the braces of the kernel."""
    for match in _ENTRY.finditer(ptx):
        if match[1] != entry:
            continue
        start = ptx.find("{", match.end())
        depth = 0
        for at in range(start, len(ptx)):
            depth += {"{": 1, "}": -1}.get(ptx[at], 0)
            if depth == 0:
                return ptx[start + 1 : at]
    raise CompileError(f"ptx: the text must hold the kernel '{entry}', got none")


def _statements(body: str) -> tuple[list[_Statement], dict[str, int], dict[str, list[str]]]:
    """Instructions, labels as indices into them, and the tables of indirect branches."""
    statements: list[_Statement] = []
    labels: dict[str, int] = {}
    tables: dict[str, list[str]] = {}
    at, label = 0, ""
    while body[at:].strip():
        if found := _LABEL.match(body, at):
            label = found[1]
            labels[label] = len(statements)
        elif not (found := _SCOPE.match(body, at)):
            found = _STATEMENT.match(body, at)
            if found is None:
                raise CompileError(f"ptx: a statement must end in ';', got {body[at : at + 40]!r}")
            _add(found[1].strip(), label, statements, tables)
        at = found.end()
    return statements, labels, tables


def _add(text: str, label: str, statements: list[_Statement], tables: dict[str, list[str]]) -> None:
    if text.startswith(".branchtargets"):
        tables[label] = re.findall(r"[\w$]+", text.removeprefix(".branchtargets"))
    elif text and not text.startswith("."):
        bare = _GUARD.sub("", text, count=1) if text.startswith("@") else text
        statements.append(_Statement(" ".join(bare.split()), bare is not text))


def _instruction(
    statement: _Statement, labels: dict[str, int], tables: dict[str, list[str]]
) -> Instruction:
    opcode, _, operands = statement.text.partition(" ")
    kind = opcode.split(".")[0]
    if kind not in ("bra", "brx", *_LEAVES):
        return Instruction(statement.text)
    names = [operands.strip()] if kind == "bra" else []
    if kind == "brx":
        names = tables.get(operands.rpartition(",")[2].strip(), [])
    targets = tuple(labels[name] for name in names if name in labels)
    return Instruction(statement.text, targets, falls_through=statement.guarded)

"""IR for people: generic MLIR text without what a reader skips.

Operand types go, result types stay, but what a slot holds is said by its ring alone. Op names lose
their quotes, constants are written where they are used, and values are named after the op that
makes them, so that two texts can be compared.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(r" : \((?:.*)\) -> (.+)$")
_CONSTANT = re.compile(r"\s*(%\w+) = arith\.constant (\S+)(?: : \w+)?$")
_DEFINITION = re.compile(r'(\s*)(%\w+)((?::\d+)?) = "?([\w.]+)"?')
_VALUE = re.compile(r"%\w+")
_SLOT = re.compile(r"!pipe\.slot<.*>$")
_OP_NAME = re.compile(r'"((?:tile|pipe|sm|linalg|tensor)\.[\w.]+)"')


def readable(text: str) -> str:
    """The ops inside the outer module of `text`, shortened."""
    lines = text.splitlines()[1:-1]
    names: dict[str, str] = {}
    scopes: list[set[str]] = [set()]
    shown = []
    for line in lines:
        _leave(line, scopes)
        constant = _CONSTANT.match(line)
        if constant:
            names[constant[1]] = constant[2]
        else:
            shown.append(_shorten(_rename(line, names, scopes)).removeprefix("  "))
        scopes += [set() for _ in range(_opened(line))]
    return "\n".join(line.rstrip() for line in shown) + "\n"


def _opened(line: str) -> int:
    return line.count("{") - line.count("}") if line.rstrip().endswith("{") else 0


def _leave(line: str, scopes: list[set[str]]) -> None:
    """A line that begins with a closing brace ends a region."""
    if line.strip().startswith("}") and len(scopes) > 1:
        scopes.pop()
        if line.rstrip().endswith("{"):
            scopes.append(set())


def _rename(line: str, names: dict[str, str], scopes: list[set[str]]) -> str:
    definition = _DEFINITION.match(line)
    if definition is None:
        return _VALUE.sub(lambda match: names.get(match[0], match[0]), line)
    indent, value, count, op = definition.groups()
    operands = _VALUE.sub(lambda match: names.get(match[0], match[0]), line[definition.end() :])
    names[value] = _fresh(op.rpartition(".")[2], scopes)
    return f"{indent}{names[value]}{count} = {op}{operands}"


def _fresh(stem: str, scopes: list[set[str]]) -> str:
    name, number = f"%{stem}", 1
    while any(name in scope for scope in scopes):
        number += 1
        name = f"%{stem}{number}"
    scopes[-1].add(name)
    return name


def _shorten(line: str) -> str:
    line = _OP_NAME.sub(r"\1", line)
    signature = _SIGNATURE.search(line)
    if signature is None or " func.func " in line:
        return line
    result = "" if signature[1] == "()" else f" : {signature[1]}"
    return line[: signature.start()] + _SLOT.sub("!pipe.slot", result)

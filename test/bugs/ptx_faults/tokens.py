"""Instructions of a text of PTX left out, exchanged, with another guard or another register."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z]\w*(?:\.[\w:]+)*(?:\s[^;]*)?;\s*$")
GUARD = re.compile(r"^(?P<before>\s*)@(?P<negated>!?)(?P<guard>%\w+)\s+")
REGISTER = re.compile(r"%(?P<kind>[a-z]+)(?P<number>\d+)\b")
NEAR = (-2, -1, 1, 2)


class Mutant(NamedTuple):
    """A text with other lines from a line on, counted from 1."""

    line: int
    lines: list[str]
    text: str

    @property
    def faulty(self) -> str:
        """The whole text."""
        lines = self.text.splitlines()
        lines[self.line - 1 : self.line - 1 + len(self.lines)] = self.lines
        return "\n".join(lines) + "\n"

    @property
    def title(self) -> str:
        """The line, its instruction, and what stands there instead."""
        shown = self.text.splitlines()[self.line - 1].strip()
        return f"line {self.line}: {shown}: {' '.join(each.strip() for each in self.lines)}"


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    for line, shown in enumerate(text.splitlines(), 1):
        if INSTRUCTION.match(shown.partition("//")[0]):
            yield line, shown.partition("//")[0].rstrip()


def left_out(text: str) -> Iterator[Mutant]:
    """Every instruction but for those that end or move the thread."""
    for line, shown in _instructions(text):
        if not re.match(r"\s*(?:@!?%\w+\s+)?(?:bra|ret|exit|trap)\b", shown):
            yield Mutant(line, [""], text)


def guards(text: str) -> Iterator[Mutant]:
    """Every guard negated, and taken away."""
    for line, shown in _instructions(text):
        found = GUARD.match(shown)
        if found:
            rest = shown[found.end() :]
            other = "" if found["negated"] else "!"
            yield Mutant(line, [f"{found['before']}@{other}{found['guard']} {rest}"], text)
            yield Mutant(line, [found["before"] + rest], text)


def registers(text: str) -> Iterator[Mutant]:
    """Every register exchanged for those of its class with the next numbers."""
    known = {found[0] for found in REGISTER.finditer(text)}
    for line, shown in _instructions(text):
        for found in REGISTER.finditer(shown):
            for step in NEAR:
                other = f"%{found['kind']}{int(found['number']) + step}"
                if other in known:
                    changed = shown[: found.start()] + other + shown[found.end() :]
                    yield Mutant(line, [changed], text)


def exchanged(text: str) -> Iterator[Mutant]:
    """Every two instructions that stand one behind the other, the other way round."""
    instructions = dict(_instructions(text))
    for line, shown in instructions.items():
        if line + 1 in instructions:
            yield Mutant(line, [instructions[line + 1], shown], text)

"""Instructions of PTX left out, doubled, moved, or with other guards, registers or labels."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z]\w*(?:\.[\w:]+)*(?:\s[^;]*)?;\s*$")
GUARD = re.compile(r"^(?P<before>\s*)@(?P<negated>!?)(?P<guard>%\w+)\s+")
REGISTER = re.compile(r"%(?P<kind>[a-z]+)(?P<number>\d+)\b")
NEAR = (-2, -1, 1, 2)
FAR = (-12, -5, -3, 3, 5, 12)
"""Lines by which an instruction is moved."""
BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(?P<label>\$?\w+);")
LABEL = re.compile(r"^\s*(?P<label>[\w$]+):")
MOVES_ON = re.compile(r"\s*(?:@!?%\w+\s+)?(?:bra|ret|exit|trap)\b")


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


def instructions(text: str) -> Iterator[tuple[int, str]]:
    for line, shown in enumerate(text.splitlines(), 1):
        if INSTRUCTION.match(shown.partition("//")[0]):
            yield line, shown.partition("//")[0].rstrip()


def left_out(text: str) -> Iterator[Mutant]:
    """Every instruction but for those that end or move the thread."""
    for line, shown in instructions(text):
        if not MOVES_ON.match(shown):
            yield Mutant(line, [""], text)


def doubled(text: str) -> Iterator[Mutant]:
    """Every such instruction twice."""
    for line, shown in instructions(text):
        if not MOVES_ON.match(shown):
            yield Mutant(line, [f"{shown} {shown.strip()}"], text)


def moved(text: str) -> Iterator[Mutant]:
    """Every such instruction some lines up or down, past others and no label or branch."""
    known = dict(instructions(text))
    for line, shown in known.items():
        for step in FAR:
            low, high = sorted((line, line + step))
            passed = [known.get(each, "bra") for each in range(low, high + 1)]
            if not any(MOVES_ON.match(each) for each in passed):
                rest = passed[1:] if step > 0 else passed[:-1]
                yield Mutant(low, [*rest, shown] if step > 0 else [shown, *rest], text)


def swapped(text: str) -> Iterator[Mutant]:
    """Every two registers of an instruction that stand side by side, the other way round."""
    for line, shown in instructions(text):
        found = list(REGISTER.finditer(GUARD.sub(lambda each: " " * len(each[0]), shown)))
        for one, other in itertools.pairwise(found):
            if one[0] != other[0] and one["kind"] == other["kind"]:
                between = shown[one.end() : other.start()]
                changed = shown[: one.start()] + other[0] + between + one[0] + shown[other.end() :]
                yield Mutant(line, [changed], text)


def labels(text: str) -> Iterator[Mutant]:
    """Every branch to the labels that stand before and behind its own."""
    known = [found["label"] for each in text.splitlines() if (found := LABEL.match(each))]
    for line, shown in instructions(text):
        found = BRANCH.search(shown)
        if found and found["label"] in known:
            at = known.index(found["label"])
            for other in {*known[max(at - 1, 0) : at], *known[at + 1 : at + 2]}:
                changed = shown[: found.start("label")] + other + shown[found.end("label") :]
                yield Mutant(line, [changed], text)


def guards(text: str) -> Iterator[Mutant]:
    """Every guard negated, and taken away."""
    for line, shown in instructions(text):
        found = GUARD.match(shown)
        if found:
            rest = shown[found.end() :]
            other = "" if found["negated"] else "!"
            yield Mutant(line, [f"{found['before']}@{other}{found['guard']} {rest}"], text)
            yield Mutant(line, [found["before"] + rest], text)


def registers(text: str) -> Iterator[Mutant]:
    """Every register exchanged for those of its class with the next numbers."""
    known = {found[0] for found in REGISTER.finditer(text)}
    for line, shown in instructions(text):
        for found in REGISTER.finditer(shown):
            for step in NEAR:
                other = f"%{found['kind']}{int(found['number']) + step}"
                if other in known:
                    changed = shown[: found.start()] + other + shown[found.end() :]
                    yield Mutant(line, [changed], text)


def exchanged(text: str) -> Iterator[Mutant]:
    """Every two instructions that stand one behind the other, the other way round."""
    known = dict(instructions(text))
    for line, shown in known.items():
        if line + 1 in known:
            yield Mutant(line, [known[line + 1], shown], text)

"""Numbers of a text of PTX, and the wrong ones that may stand in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

INSTRUCTION = re.compile(r"\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z]\w*(?:\.[\w:]+)*)\s(?P<operands>.*);")
NUMBER = re.compile(r"(?<![\w.%$])-?\d+(?![\w.:])")
LONG, WORD = 1 << 32, 1 << 20
"""From here on a number has 64 bits, or 32, as descriptors do; others have those that they need."""


class Number(NamedTuple):
    """A constant or an offset of an instruction: the line, counted from 1, and where it stands."""

    line: int
    start: int
    end: int
    value: int
    opcode: str


class Mutant(NamedTuple):
    """A text with another value in place of a number."""

    number: Number
    value: int
    text: str

    @property
    def faulty(self) -> str:
        """The whole text."""
        lines = self.text.splitlines()
        line = lines[self.number.line - 1]
        lines[self.number.line - 1] = (
            f"{line[: self.number.start]}{self.value}{line[self.number.end :]}"
        )
        return "\n".join(lines) + "\n"

    @property
    def line(self) -> int:
        """The line of the instruction, counted from 1."""
        return self.number.line

    @property
    def title(self) -> str:
        """The line, its instruction, and the change."""
        shown = self.text.splitlines()[self.number.line - 1].strip()
        return f"line {self.number.line}: {shown}: {self.number.value} -> {self.value}"


def numbers(text: str) -> list[Number]:
    """Every number of every instruction, but for hexadecimal ones."""
    found = []
    for line, shown in enumerate(text.splitlines(), 1):
        instruction = INSTRUCTION.match(shown.partition("//")[0])
        if instruction is None:
            continue
        for each in NUMBER.finditer(
            shown, instruction.start("operands"), instruction.end("operands")
        ):
            found.append(Number(line, *each.span(), int(each[0]), instruction["opcode"]))
    return found


def wrong(number: Number) -> list[int]:
    """One more, one less, 16 more and less, and the value with each of its bits flipped."""
    value = number.value
    near = {value + step for step in ((1, -1, 16, -16) if abs(value) >= 8 else (1, -1))}
    bits = 64 if abs(value) >= LONG else 32 if abs(value) >= WORD else abs(value).bit_length() + 1
    flipped = {value ^ 1 << bit for bit in range(bits)}
    return sorted(each for each in near | flipped if -(1 << 63) <= each < 1 << 64)


def mutants(text: str) -> Iterator[Mutant]:
    """Every number of the text, with every wrong value."""
    for number in numbers(text):
        for value in wrong(number):
            yield Mutant(number, value, text)

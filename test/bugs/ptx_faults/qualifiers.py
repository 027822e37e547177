"""Opcodes of a text of PTX with one qualifier replaced by another that is legal elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

OPCODE = re.compile(r"^(?P<before>\s*(?:@!?%\w+\s+)?)(?P<opcode>[a-z]\w*(?:\.[\w:]+)+)(?=\s|;)")
INSTEAD = {
    "release": ["relaxed"], "acquire": ["relaxed"], "acq_rel": ["release", "acquire", "relaxed"],
    "cluster": ["cta", ""], "gpu": ["cta", "cluster", ""], "sys": ["cta"], "cta": ["cluster"],
    "shared::cluster": ["shared::cta", "global"], "shared::cta": ["global"], "async": ["alias"],
    "cta_group::1": ["cta_group::2"], "cta_group::2": ["cta_group::1"],
    "before_thread_sync": ["after_thread_sync"], "after_thread_sync": ["before_thread_sync"],
    "wait::ld": ["wait::st"], "wait::st": ["wait::ld"], "read": [""], "noinc": [""],
    "trans": [""], "multicast::cluster": [""], "warpx4": ["warpx2::02_13"],
    "kind::f16": ["kind::tf32", "kind::f8f6f4", "kind::i8"], "kind::f8f6f4": ["kind::f16"],
    "kind::mxf8f6f4": ["kind::mxf4nvf4"], "scale_vec::1X": ["scale_vec::2X"],
    "scale_vec::2X": ["scale_vec::4X"], "scale_vec::4X": ["scale_vec::2X"],
    "block16": ["block32"], "block32": ["block16"],
    "32x32b": ["16x256b"], "16x256b": ["16x128b"], "16x64b": ["32x32b"], "16x128b": ["16x64b"],
    "collector::a::fill": ["collector::a::use"], "collector::a::use": ["collector::a::fill"],
    "collector::a::lastuse": ["collector::a::discard"], "f16x2": ["bf16x2"], "bf16x2": ["f16x2"],
    "f16": ["bf16"], "bf16": ["f16"], "e4m3": ["e5m2"], "e5m2": ["e4m3"], "e4m3x2": ["e5m2x2"],
    "row": ["col"], "rn": ["rz"], "rna": ["rn"], "satfinite": [""], "relu": [""], "ftz": [""],
    "lt": ["le", "ge"], "le": ["lt"], "gt": ["ge"], "ge": ["gt", "lt"], "eq": ["ne"], "ne": ["eq"],
    "lo": ["hi"], "hi": ["lo"], "wide": ["lo"], "l": ["r"], "clamp": ["wrap"], "wrap": ["clamp"],
    "and": ["or"], "or": ["and", "xor"], "xor": ["or"], "add": ["max"], "x4": ["x2"],
    "launch_dependents": ["wait"], "wait": ["launch_dependents"], "expect_tx": ["", "complete_tx"],
    "try_wait": ["test_wait"], "up": ["down"], "bfly": ["down"], "idx": ["bfly"], "any": ["all"],
    "shl": ["shr"], "bar": [""], "dec": ["inc"], "sync": ["arrive"], "b8": ["b16"],
}  # fmt: skip


class Mutant(NamedTuple):
    """A text with another opcode at a line, counted from 1."""

    line: int
    opcode: str
    text: str

    @property
    def faulty(self) -> str:
        """The whole text."""
        lines = self.text.splitlines()
        lines[self.line - 1] = OPCODE.sub(rf"\g<before>{self.opcode}", lines[self.line - 1])
        return "\n".join(lines) + "\n"

    @property
    def title(self) -> str:
        """The line, its instruction, and the change."""
        return f"line {self.line}: {self.text.splitlines()[self.line - 1].strip()}: {self.opcode}"


def mutants(text: str) -> Iterator[Mutant]:
    """Every qualifier of the text, with each that may stand in its place."""
    for line, shown in enumerate(text.splitlines(), 1):
        found = OPCODE.match(shown.partition("//")[0])
        parts = found["opcode"].split(".") if found else []
        for at, part in enumerate(parts):
            for other in INSTEAD.get(part, []):
                changed = [*parts[:at], *([other] if other else []), *parts[at + 1 :]]
                yield Mutant(line, ".".join(changed), text)

"""The table of modelled instructions: PTX mnemonic to the builder that binds one occurrence.

    @instruction("selp", section="9.7.6.3")
    def build_selp(ins: Decoded) -> Step:
        type_ = ins.take_type()
        ins.finish_modifiers()
        ...
        def step(warp, mask): ...
        return step

A builder runs once per instruction at decode time; the `Step` it returns runs once per warp
issue: `step(warp, mask)` with `mask` the bool[32] lanes to execute (guard already applied, at
least one lane set; it is the object `warp.FULL` when all 32 execute). What a step returns:

- `None`: done, go on with the next instruction;
- `Blocked(kind, describe)`: nothing happened, park these lanes and retry the same instruction
  after the next event of the CTA (`cta.notify()`), or with `key` after `cta.wake(key)` alone;
- `Yield(kind, describe)`: done, results written (a wait that answered False), but nothing useful
  can follow before an event: go on with the next instruction after an event, or when everybody
  else is parked too;
- `SWITCH`: done, let somebody else run first;
- `JUMP`: the step has set `warp.split.pc`; the same lanes go on there;
- `CONTROL`: the step has moved or removed splits of the warp itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interface import Warp

Step = Callable[[Warp, np.ndarray], Any]
Builder = Callable[[Any], Step]
"""A function of one occurrence, a `decode.Decoded`."""


class StepSignal:
    """A distinguished return value of a step."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


SWITCH = StepSignal("SWITCH")
JUMP = StepSignal("JUMP")
CONTROL = StepSignal("CONTROL")


class Blocked:
    """The step could not proceed; `describe()` says for what it waits, in a deadlock report.

    `kind` is a short word: `barrier`, `convergence`, `tmem`, `bulk-group` … `describe` is called
    only when a deadlock is reported. `key` (hashable) names what ends the wait, where one thing of
    the CTA does: then nothing else disturbs it. `subject` is the barrier's side of the wait, for
    reports (`waits.Subject`). What a retried step must remember goes to `warp.split.token` (splits
    that hold a token never merge; set it back to None when done).
    """

    __slots__ = ("describe", "key", "kind", "subject")

    def __init__(
        self,
        kind: str,
        describe: Callable[[], str],
        key: Hashable | None = None,
        subject: Any = None,
    ):
        self.kind, self.describe, self.key, self.subject = kind, describe, key, subject


class Yield(Blocked):
    """The step is done, but its lanes are expected to ask again; see the module's docstring."""

    __slots__ = ()


@dataclass(frozen=True)
class Entry:
    """One registered mnemonic: its ISA section and builder."""

    mnemonic: str
    section: str
    build: Builder


MAX_PIECES = 8
"""Dotted pieces of a mnemonic."""
_TABLE: dict[str, Entry] = {}


def instruction(*mnemonics: str, section: str) -> Callable[[Builder], Builder]:
    """Register a builder for opcodes that start with one of `mnemonics` (whole dotted pieces).

    `section` is the PTX ISA section, shown when an unmodelled modifier is met.
    """

    def register(build: Builder) -> Builder:
        for mnemonic in mnemonics:
            if mnemonic in _TABLE:
                raise ValueError(f"instruction {mnemonic} is registered twice")
            if mnemonic.count(".") >= MAX_PIECES:
                raise ValueError(f"instruction {mnemonic} has more than {MAX_PIECES} pieces")
            _TABLE[mnemonic] = Entry(mnemonic, section, build)
        return build

    return register


def find(opcode: str) -> tuple[Entry, tuple[str, ...]] | None:
    """The entry with the longest dotted prefix of `opcode`, and the pieces that remain."""
    pieces = opcode.split(".")
    for length in range(min(len(pieces), MAX_PIECES), 0, -1):
        entry = _TABLE.get(".".join(pieces[:length]))
        if entry is not None:
            return entry, tuple(pieces[length:])
    return None


def family_section(opcode: str) -> str | None:
    """The ISA section that the modelled instructions of an opcode's family share, if any are."""
    family = opcode.partition(".")[0]
    known = [
        entry.section.split(".")
        for mnemonic, entry in _TABLE.items()
        if mnemonic.partition(".")[0] == family
    ]
    shared = [pieces[0] for pieces in zip(*known, strict=False) if len(set(pieces)) == 1]
    return ".".join(shared) if known else None


def mnemonics() -> tuple[str, ...]:
    """Every registered mnemonic, sorted."""
    return tuple(sorted(_TABLE))

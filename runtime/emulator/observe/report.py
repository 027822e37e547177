"""What a launch did: instructions, bytes, waits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..errors import short_name
from ..ptx.program import Program
from .profile import Profile
from .unreached import unreached

MAX_PRINTED = 1 << 20
_LINE = re.compile(r"ptx:(\d+)")


@dataclass(frozen=True)
class Suspicion:
    """What the ISA allows and hardly anybody means. category: kebab-case, as those of a Trap.

    count: how often it was seen with these PTX lines; the message is that of the first time.
    """

    category: str
    message: str
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.category}: {self.message}{times}"

    @property
    def group(self) -> tuple[str, ...]:
        """Category and PTX lines, or the message where that names none."""
        return self.category, *(_LINE.findall(self.message) or [self.message])


@dataclass
class Report:
    """instructions: warp instructions by full opcode; memory_bytes: by (space, `read`|`write`);
    engines: what the asynchronous engines did, by name (`tma load bytes`, `mma flops` …);
    waits: try_wait/test_wait asked, and those that answered False; steps: warp instructions;
    warnings: things that are legal to run but suspicious; unreached: by PTX line, the instructions
    that order threads or operations and that no warp has executed: of them the launch says nothing,
    which is no fault; origins: where the PTX lines that
    they cite are from (`.loc`); printed: what vprintf wrote, one call after the other; profile:
    more of all this, if it was asked for; workers: the processes that ran it."""

    kernel: str
    instructions: Counter = field(default_factory=Counter)
    memory_bytes: Counter = field(default_factory=Counter)
    engines: Counter = field(default_factory=Counter)
    waits: int = 0
    waits_suspended: int = 0
    steps: int = 0
    warnings: list[Suspicion] = field(default_factory=list)
    unreached: dict[int, str] | None = None
    origins: list[str] = field(default_factory=list)
    printed: str = ""
    profile: Profile | None = None
    workers: int = field(default=1, compare=False)
    _groups: dict[tuple[str, ...], int] = field(default_factory=dict, repr=False)

    def count_wait(self, answered: bool) -> None:
        """Count one mbarrier wait instruction of a warp."""
        self.waits += 1
        self.waits_suspended += not answered

    def add(self, other: Report) -> None:
        """What another part of the launch did, which has no profile."""
        self.instructions.update(other.instructions)
        self.memory_bytes.update(other.memory_bytes)
        self.engines.update(other.engines)
        self.waits += other.waits
        self.waits_suspended += other.waits_suspended
        self.steps += other.steps
        self.note_unreached(other.unreached or {})
        for warning in other.warnings:
            self.warn(warning.category, warning.message, warning.count)
        self.note_printed(other.printed)

    def warn(self, category: str, message: str, count: int = 1) -> None:
        """Note a suspicion, and count it where the same PTX lines gave one of its category."""
        suspicion = Suspicion(category, message, count)
        at = self._groups.setdefault(suspicion.group, len(self.warnings))
        if at == len(self.warnings):
            self.warnings.append(suspicion)
            return
        known = self.warnings[at]
        self.warnings[at] = replace(known, count=known.count + count)

    def warn_of(self, suspicions: Iterable[tuple[str, str]]) -> None:
        """Note suspicions, each a category and a message."""
        for category, message in suspicions:
            self.warn(category, message)

    def note_executed(self, program: Program, executed: Sequence[int]) -> None:
        """Count the instructions of a part of the launch; executed: how often each has run."""
        for source, count in zip(program.source, executed, strict=True):
            if count:
                self.instructions[source.opcode] += count
        self.note_unreached(unreached(program, executed))

    def note_unreached(self, lines: dict[int, str]) -> None:
        """Note what a part of the launch has not reached: in the end, what none of them has."""
        known = lines if self.unreached is None else self.unreached
        self.unreached = {line: text for line, text in known.items() if line in lines}

    def note_printed(self, text: str) -> None:
        """Keep what a thread has printed, up to the size of the device's own buffer."""
        self.printed = (self.printed + text)[:MAX_PRINTED]

    def as_dict(self) -> dict:
        """Plain dicts and numbers, for JSON."""
        return {
            "kernel": self.kernel,
            "steps": self.steps,
            "workers": self.workers,
            "instructions": dict(self.instructions.most_common()),
            "memory_bytes": _nested(self.memory_bytes),
            "engines": dict(sorted(self.engines.items())),
            "barrier_waits": {"asked": self.waits, "suspended": self.waits_suspended},
            "warnings": [asdict(warning) for warning in self.warnings],
            "unreached": [
                {"line": line, "text": text} for line, text in (self.unreached or {}).items()
            ],
            "origins": self.origins,
            "printed": self.printed,
            **({"profile": self.profile.as_dict()} if self.profile else {}),
        }

    def __str__(self) -> str:
        where = f" in {self.workers} processes" if self.workers > 1 else ""
        lines = [f"kernel {short_name(self.kernel)}: {self.steps} warp instructions{where}"]
        lines += [f"  {count:>10}  {opcode}" for opcode, count in self.instructions.most_common()]
        lines += [
            f"  {space} {direction}: {size} bytes"
            for (space, direction), size in sorted(self.memory_bytes.items())
        ]
        lines += [f"  {name}: {amount}" for name, amount in sorted(self.engines.items())]
        lines.append(f"  barrier waits: {self.waits}, answered false: {self.waits_suspended}")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"    {origin}" for origin in self.origins]
        lines += [
            f"  not reached: ptx:{line}: `{text}`" for line, text in (self.unreached or {}).items()
        ]
        lines += [f"  printed: {text}" for text in self.printed.splitlines()]
        lines += [str(self.profile)] if self.profile else []
        return "\n".join(lines)


def _nested(counter: Counter) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), value in sorted(counter.items()):
        nested.setdefault(outer, {})[inner] = value
    return nested

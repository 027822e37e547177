"""Intensities, minimum times and the bottleneck of a kernel, from counts and a chip's ceilings.

The model is the hierarchical roofline (S. Williams et al., 2009; C. Yang et al., 2019): a kernel
has an arithmetic intensity for each level of memory, operations by the bytes that the level moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...compiler.schedule.chips.ceilings import (
    HBM,
    L2,
    LEVELS,
    SHARED,
    TENSOR_MEMORY,
    Ceilings,
    ceilings_of,
)
from ...dialects.errors import CompileError
from ...runtime.emulator.observe.bank_conflicts import PASS_BYTES
from ...runtime.emulator.observe.global_requests import SECTOR
from ...runtime.emulator.observe.profile import THREADS, Profile

SHARED_NAMES = ("shared", "distributed shared")


@dataclass(frozen=True)
class Counts:
    """The counts of a launch. operations: by (unit, type of operands). asked, moved: bytes by
    level.

    HBM moves every sector that is touched once, if L2 holds it from then on; L2 moves the sectors
    of each request, shared memory 128 bytes a pass, tensor memory what threads load and store.
    """

    name: str
    target: str
    ctas: int
    operations: dict[tuple[str, str], int]
    asked: dict[str, int]
    moved: dict[str, int]


def counts_of(name: str, target: str, ctas: int, profile: Profile) -> Counts:
    """The counts that a profile of the emulator holds."""
    totals = profile.totals()
    unique = totals.unique_read_sectors + totals.unique_written_sectors
    bytes_in = profile.bytes.items()
    shared = sum(amount for (memory, _, _), amount in bytes_in if memory in SHARED_NAMES)
    by_threads = sum(n for (memory, _, who), n in bytes_in if (memory, who) == ("tensor", THREADS))
    asked = {
        HBM: unique * SECTOR,
        L2: totals.asked_bytes,
        SHARED: shared,
        TENSOR_MEMORY: by_threads,
    }
    moved = {L2: totals.sectors * SECTOR, SHARED: totals.passes * PASS_BYTES}
    return Counts(name, target, ctas, dict(profile.operations), asked, asked | moved)


@dataclass(frozen=True)
class Roofline:
    """A kernel below its roofs; measured_us: what a GPU took, if that is known."""

    counts: Counts
    ceilings: Ceilings
    measured_us: float | None = None

    @cached_property
    def unit(self) -> tuple[str, str]:
        """The unit, and type of operands, whose operations take longest; of known rate."""
        times = {}
        for (unit, type_), count in self.counts.operations.items():
            rate = self.ceilings.rate(unit, type_)
            if rate is not None and count:
                times[unit, type_] = count / rate
        if not times:
            raise CompileError(_no_operations(self.counts, self.ceilings))
        return max(times, key=times.__getitem__)

    @property
    def operations(self) -> int:
        """The operations of `unit`."""
        return self.counts.operations[self.unit]

    @property
    def peak(self) -> float:
        """Operations a second that the unit performs at best."""
        rate = self.ceilings.rate(*self.unit)
        assert rate is not None
        return float(rate)

    @cached_property
    def levels(self) -> list[str]:
        """Levels that move something and have a ceiling, the slowest first."""
        known = (level for level in LEVELS if level in self.ceilings.memory)
        return [level for level in known if self.counts.moved[level]]

    def intensity(self, level: str) -> float:
        """Operations by the bytes that a level moves."""
        return self.operations / self.counts.moved[level]

    def attainable(self, level: str) -> float:
        """Operations a second below the roof of a level."""
        return min(self.peak, self.intensity(level) * self.ceilings.memory[level])

    @cached_property
    def seconds(self) -> dict[str, float]:
        """What each unit and level takes at least."""
        computing = {" ".join(self.unit): self.operations / self.peak}
        moved, rates = self.counts.moved, self.ceilings.memory
        return computing | {level: moved[level] / rates[level] for level in self.levels}

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(self.seconds, key=self.seconds.__getitem__)

    @property
    def at_least_us(self) -> float:
        """Microseconds that the limit alone takes."""
        return 1e6 * self.seconds[self.limit]

    @property
    def measured_rate(self) -> float | None:
        """Operations a second that were measured."""
        return None if self.measured_us is None else self.operations / self.measured_us * 1e6

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.counts.name,
            "ctas": self.counts.ctas,
            "operations": [
                {"unit": unit, "type": type_, "operations": count}
                for (unit, type_), count in sorted(self.counts.operations.items())
            ],
            "levels": {
                level: {
                    "asked_bytes": self.counts.asked[level],
                    "moved_bytes": self.counts.moved[level],
                    "intensity": self.intensity(level),
                }
                for level in self.levels
            },
            "at_least_us": {name: 1e6 * seconds for name, seconds in self.seconds.items()},
            "limit": self.limit,
            "measured_us": self.measured_us,
        }


def _no_operations(counts: Counts, ceilings: Ceilings) -> str:
    known = ", ".join(f"{unit} {type_}" for unit, type_ in ceilings.compute)
    got = ", ".join(f"{unit} {type_}" for unit, type_ in counts.operations) or "none"
    rule = f"must perform operations of a known rate on {ceilings.chip} ({known})"
    return f"{counts.name}: {rule}, got {got}; draw another kernel"


def rooflines_of(
    kernels: list[Counts], times: dict[str, float], gpu: str | None = None
) -> list[Roofline]:
    """Each kernel below the roofs of a GPU, of its target's unless one is named."""
    return [Roofline(each, ceilings_of(each.target, gpu), times.get(each.name)) for each in kernels]

"""Lower bounds of the time of a kernel, from what the emulator counted and limits of the chip.

A bound, no estimate: it knows no latency, and hides everything behind the slowest count.

    units           operations, of the multiprocessors that have a CTA
    shared memory   passes over the banks, of the same
    requests        of warps to global memory: a multiprocessor takes one of them a cycle, of up to
                    128 bytes, whatever its caches hold; copy engines don't ask so
    HBM             every sector that is touched, once

L2 is left out: what L1 holds is not asked of it, and the emulator has no L1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...compiler.schedule.chips.ceilings import HBM, SHARED, Ceilings, ceilings_of
from ...runtime.emulator.observe.bank_conflicts import PASS_BYTES
from ...runtime.emulator.observe.global_requests import SECTOR
from ...runtime.emulator.observe.profile import Profile

REQUESTS = "requests"
BY_ENGINES = ".bulk"


@dataclass(frozen=True)
class Bound:
    """Microseconds at least, and the count that takes them."""

    us: float
    by: str


def bound_of(target: str, ctas: int, profile: Profile) -> Bound:
    """The bound of a launch of `ctas` CTAs on the GPU of the target."""
    seconds = dict(_seconds(ceilings_of(target), ctas, profile))
    slowest = max(seconds, key=seconds.__getitem__)
    return Bound(1e6 * seconds[slowest], slowest)


def _seconds(ceilings: Ceilings, ctas: int, profile: Profile) -> Iterator[tuple[str, float]]:
    totals = profile.totals()
    touched = totals.unique_read_sectors + totals.unique_written_sectors
    yield HBM, touched * SECTOR / ceilings.memory[HBM]
    share = min(1.0, ctas / ceilings.multiprocessors)
    passes = PASS_BYTES / (share * ceilings.memory[SHARED])
    yield SHARED, totals.passes * passes
    yield REQUESTS, request_passes(profile) * passes
    for (unit, type_), count in profile.operations.items():
        rate = ceilings.rate(unit, type_)
        if rate is not None:
            yield f"{unit} {type_}", count / (share * rate)


def request_passes(profile: Profile) -> int:
    """Cycles of the load/store units: one an instruction of a warp, more beyond 128 bytes."""
    by_threads = (each for each in profile.requests if BY_ENGINES not in each.ptx_text)
    return sum(max(each.executions, -(-each.asked_bytes // PASS_BYTES)) for each in by_threads)

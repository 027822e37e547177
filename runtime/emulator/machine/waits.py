"""What a blocked thread waits for, as reports show it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..interface import Cta
from ..ptx.registry import Blocked
from .cluster import Cluster
from .mbarrier import Mbarrier
from .named_barrier import NamedBarrier


class MbarrierWait(NamedTuple):
    """A thread that was told no. value: the parity or the state that it asked about; offset: of
    the barrier in the CTA's window."""

    cta: Cta
    offset: int
    barrier: Mbarrier
    value: int
    by_parity: bool

    @property
    def asked(self) -> str:
        return f"parity {self.value}" if self.by_parity else f"state 0x{self.value:x}"

    def describe(self) -> str:
        """One line for error and deadlock reports."""
        return f"waits for {self.asked} of {self.barrier.describe()}"

    @property
    def name(self) -> str | None:
        """What the kernel's author calls the barrier."""
        return self.cta.launch.barrier_name(self.offset)


Subject = MbarrierWait | NamedBarrier | Cluster
"""The barrier's side of a wait."""


def wait_title(reason: Blocked) -> str:
    """A few words that are the same for every wait on the same thing."""
    subject = reason.subject
    if isinstance(subject, MbarrierWait):
        return subject.name or f"mbarrier 0x{subject.offset:x}"
    if isinstance(subject, NamedBarrier):
        return f"barrier {subject.number}"
    return "cluster barrier" if isinstance(subject, Cluster) else reason.kind


def wait_fields(reason: Blocked) -> dict[str, Any]:
    """A wait for JSON. Of an mbarrier: its name or null, address, CTA, what was asked, phase,
    parity, and the arrivals and bytes still missing."""
    subject = reason.subject
    if isinstance(subject, MbarrierWait):
        return _mbarrier_fields(subject)
    if isinstance(subject, NamedBarrier | Cluster):
        return _threads_fields(subject)
    return {"kind": reason.kind, "text": reason.describe()}


def _mbarrier_fields(wait: MbarrierWait) -> dict[str, Any]:
    barrier = wait.barrier
    return {
        "kind": "mbarrier",
        "name": wait.name,
        "address": f"0x{wait.offset:x}",
        "cta": list(wait.cta.index),
        "asked": wait.asked,
        "phase": barrier.phase,
        "parity": barrier.phase & 1,
        "arrivals_expected": barrier.expected,
        "arrivals_missing": barrier.pending,
        "bytes_missing": barrier.tx,
        "text": wait.describe(),
    }


def _threads_fields(barrier: NamedBarrier | Cluster) -> dict[str, Any]:
    named = isinstance(barrier, NamedBarrier)
    needed = barrier.needed if named else barrier.live_threads
    place = {"number": barrier.number, "cta": list(barrier.cta.index)} if named else {}
    return {
        "kind": "barrier" if named else "cluster barrier",
        **place,
        "threads_expected": needed,
        "threads_missing": needed - barrier.arrived,
        "text": barrier.describe(),
    }

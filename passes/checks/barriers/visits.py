"""The ops of an agent on the slots of a ring, as `phases.py` counts them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ....dialects.mlir import ir
from .barrier_sources import is_empty

Signals = Counter[Any]
"""By the rank of the CTA whose barrier hears; bytes of each row of a box by (rank, most rows)."""


@dataclass
class Visit:
    """What an agent does at one slot: waits, and by barriers the arrivals and bytes of each CTA."""

    waits: dict[ir.Value, Any] = field(default_factory=dict)
    arrivals: dict[ir.Value, Signals] = field(default_factory=dict)
    expected: dict[ir.Value, Signals] = field(default_factory=dict)
    brought: dict[ir.Value, Signals] = field(default_factory=dict)
    signals: dict[ir.Value, Any] = field(default_factory=dict)
    last: Any = None

    def add(self, what: str, barriers: ir.Value, signals: Signals, op: Any) -> None:
        """Count arrivals, or bytes expected or brought."""
        counts = getattr(self, what).setdefault(barriers, Counter())
        counts.update(signals)
        self.signals.setdefault(barriers, op)
        self.last = op


@dataclass
class Agent:
    """What an agent does at the slots of each position: visits under way, and how one is done."""

    op: Any
    open: dict[ir.Value, Visit] = field(default_factory=dict)
    done: dict[ir.Value, Visit] = field(default_factory=dict)
    passes_by: set[ir.Value] = field(default_factory=set)


def only_empties(visit: Visit) -> bool:
    """Whether the agent only waits until the slot is empty, as before it ends."""
    return not visit.signals and all(is_empty(barriers) for barriers in visit.waits)


def most_of(signals: Signals) -> int:
    return max(signals.values(), default=0)

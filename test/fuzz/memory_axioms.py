"""What the PTX memory model (ISA §8) says of one execution, by graphs: written from its text, with
nothing of the emulator's clocks.

Operations are nodes. Edges are those of base causality order: program order, barriers, release
patterns that synchronize with acquire patterns, and fence.sc operations whose order what is read
tells. A thread is a CTA, a warp and a lane; CTAs 2q and 2q + 1 are a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

Thread = tuple[int, int, int]
REACH = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 2}


def distance(one: Thread, other: Thread) -> int:
    """0 in a CTA, 1 in a cluster, else 2: a scope reaches as far as its number."""
    return 0 if one[0] == other[0] else 1 if one[0] // 2 == other[0] // 2 else 2


@dataclass
class Operation:
    """kind: write, read, fence, or anything else; order: its `.sem`; flag: the place of a write."""

    thread: Thread
    kind: str
    order: str = "relaxed"
    scope: str = "sys"
    flag: int = -1

    def includes(self, other: Operation) -> bool:
        return REACH[self.scope] >= distance(self.thread, other.thread)


@dataclass
class Execution:
    """observed: reads, each with the write whose value it returns, through atomic updates between:
    the nodes in order. Every other list has pairs of nodes."""

    operations: list[Operation] = field(default_factory=list)
    program_order: list[tuple[int, int]] = field(default_factory=list)
    barriers: list[tuple[int, int]] = field(default_factory=list)
    observed: list[list[int]] = field(default_factory=list)
    _last: dict[Thread, int] = field(default_factory=dict)

    def add(self, operation: Operation) -> int:
        """The thread executes it now."""
        node, thread = len(self.operations), operation.thread
        self.operations.append(operation)
        if thread in self._last:
            self.program_order.append((self._last[thread], node))
        self._last[thread] = node
        return node

    def morally_strong(self, one: int, other: int) -> bool:
        """§8.7.1: strong, and the scope of each includes the other's thread."""
        a, b = self.operations[one], self.operations[other]
        return a.includes(b) and b.includes(a)

    def is_mixed(self) -> bool:
        """Whether a flag is read or updated by accesses that are not morally strong."""
        pairs = {pair for chain in self.observed for pair in pairwise(chain)}
        flags = {chain[-1]: self.operations[chain[0]].flag for chain in self.observed}
        pairs |= {
            (write, read)
            for read, flag in flags.items()
            for write, each in enumerate(self.operations)
            if each.kind == "write" and 0 <= each.flag == flag
        }
        return not all(self.morally_strong(*pair) for pair in pairs)

    def ordered(self, one: int, other: int, *, reads_before: bool = False) -> bool:
        """Whether one comes before the other in causality order. reads_before: also where a read
        might have come before a write to its place, which is not known of a poll."""
        return bool(self._causality(reads_before)[one, other])

    def _causality(self, reads_before: bool) -> np.ndarray:
        edges = {*self.program_order, *self.barriers}
        for chain in self.observed:
            for write in chain[:-1]:
                edges |= set(self._synchronizes(write, chain[-1]))
        while new := set(self._fence_order(edges, reads_before)) - edges:
            edges |= new
        return self._closure(edges)

    def _synchronizes(self, write: int, read: int) -> Iterator[tuple[int, int]]:
        """The first operation of each release pattern and the last of each acquire pattern."""
        for first in self._releases(write):
            for last in self._acquires(read):
                if self.morally_strong(first, last):
                    yield first, last

    def _releases(self, write: int) -> Iterable[int]:
        """§8.8: a release there, or a release or a fence of the thread before a strong write."""
        own = self.operations[write]
        for node, each in enumerate(self.operations[: write + 1]):
            if each.thread == own.thread:
                same = node == write or (each.kind == "write" and 0 <= each.flag == own.flag)
                if each.kind == "fence" or (same and each.order in ("release", "acq_rel")):
                    yield node

    def _acquires(self, read: int) -> Iterable[int]:
        own = self.operations[read]
        if own.order in ("acquire", "acq_rel"):
            yield read
        for node in range(read + 1, len(self.operations)):
            each = self.operations[node]
            if each.thread == own.thread and each.kind == "fence":
                yield node

    def _fence_order(
        self, edges: set[tuple[int, int]], reads_before: bool
    ) -> Iterator[tuple[int, int]]:
        """§8.9: of two fence.sc one comes first; that the other does would have a read come before
        its write."""
        fences = [node for node, each in enumerate(self.operations) if each.order == "sc"]
        reach = self._closure(edges)
        for one in fences:
            for other in fences:
                if one != other and self.morally_strong(one, other):
                    for chain in self.observed:
                        for write, read in ((write, chain[-1]) for write in chain[:-1]):
                            told = reach[one, write] and reach[read, other]
                            maybe = reads_before and reach[one, read] and reach[write, other]
                            if self.morally_strong(write, read) and (told or maybe):
                                yield one, other

    def _closure(self, edges: set[tuple[int, int]]) -> np.ndarray:
        """bool[n, n]: which nodes edges lead to."""
        count = len(self.operations)
        following: list[list[int]] = [[] for _ in range(count)]
        for before, behind in edges:
            following[before].append(behind)
        reached = np.eye(count, dtype=bool)
        for start, seen in enumerate(reached):
            waiting = [start]
            while waiting:
                for node in following[waiting.pop()]:
                    if not seen[node]:
                        seen[node] = True
                        waiting.append(node)
        return reached

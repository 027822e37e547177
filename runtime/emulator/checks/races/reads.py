"""The last readers of each byte, kept as whole reads until somebody asks for single bytes.

Most arrays that tensor copies read are never written. What the tensor core reads of shared memory
is overwritten by a copy that knows that it has been read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...truth import all_of, any_of
from .actor import LINE_BITS, Actor
from .grains import WORD, Block, Cells, Grains, Span, bytes_of, meet, span_of, words_of
from .lanes_of_bytes import lanes_of_units
from .order import CLUSTER_SHIFT

MOST_BOXES = 1 << 14
"""The number of boxes that are kept as such."""


MOST_READS = 96
"""The number of reads by one agent that are kept as such: the operands of all stages of a
pipeline."""


class _Recent:
    """A read of cells, which lie in the span if that is known."""

    __slots__ = ("_span", "cells", "lanes", "size", "when")

    def __init__(self, cells: Cells, size: int, span: Span | None):
        self.cells, self.size, self._span = cells, size, span
        self.when = 0
        self.lanes: np.ndarray | None = None

    def place(self) -> Span:
        """The span of the cells."""
        if self._span is None:
            self._span = span_of(self.cells, self.size)
        return self._span


class AgentReads:
    """When one agent last read each byte of a CTA's shared memory of ``size`` bytes.

    Recent reads are kept by the run (`grains.Run`) in which they lie, and by None if they lie in
    none.
    """

    def __init__(self, size: int):
        self._size = size
        self._recent: dict[Span | None, dict[int, _Recent]] = {}
        self._count = 0
        self._marks: Grains | None = None
        self._marked = self.latest = 0
        self._extent: Span = size, 0
        self._unplaced: list[_Recent] = []

    def note(
        self, cells: Cells, size: int, actor: Actor, span: Span | None, run: Span | None = None
    ) -> None:
        """Notes that the agent reads cells of ``size`` bytes."""
        when = actor.when
        if self._count == MOST_READS:
            self.marks()
        reads = self._recent.setdefault(run, {})
        read = reads.get(id(cells))
        if read is None or read.size != size:
            self._count += read is None
            read = reads[id(cells)] = _Recent(cells, size, span)
            self._unplaced.append(read)
        read.when, read.lanes = when, actor.lanes
        if when > self.latest:
            self.latest = when

    def may_meet(self, span: Span, since: int) -> bool:
        """Whether a read from a time on may be of bytes of a span."""
        if not meet(span, self._reach()):
            return False
        if self._marked >= since:
            return True
        low, high = span
        for run, reads in self._recent.items():
            if run is None or (low < run[1] and run[0] < high):
                for read in reads.values():
                    if read.when >= since and meet(span, read.place()):
                        return True
        return False

    def _reach(self) -> Span:
        """The bytes between which all reads lie."""
        for read in self._unplaced:
            (low, high), (lowest, highest) = read.place(), self._extent
            self._extent = min(low, lowest), max(high, highest)
        self._unplaced.clear()
        return self._extent

    def marks(self) -> Grains:
        """The time of each byte's last read, and 1 + the lane that did it."""
        if self._unplaced:
            self._extent = 0, self._size
            self._unplaced.clear()
        marks = self._marks = self._marks or Grains(self._size, np.int64, np.uint8)
        recent = [read for reads in self._recent.values() for read in reads.values()]
        for read in sorted(recent, key=lambda read: read.when):
            lanes = lanes_of_units(read.lanes, read.cells, read.size)
            marks.put(read.cells, read.size, read.when, lanes)
        self._recent.clear()
        self._count, self._marked = 0, self.latest
        return marks


class _Read(NamedTuple):
    """number: how many reads preceded it."""

    number: int
    who: int
    when: int


class LastReads:
    """The last reads of each byte of an array by two agents; a mark says who read and when, and 1 +
    the lane, or 0 for none.

    _forgotten: bytes of which an earlier read is kept no more that another cluster did, or another
    line of PTX, than what has taken its place; _boxes_forgotten: boxes of such.
    """

    def __init__(self, size: int):
        self._size = size
        self._boxes: dict[Block, tuple[_Read, _Read | None]] = {}
        self._boxes_forgotten: set[Block] = set()
        self._forgotten: np.ndarray | None = None
        self._number = 0
        self._marks: list[Grains] = []

    def note(self, index: Cells, size: int, who: int, actor: Actor) -> None:
        """Notes that an agent reads the cells of ``size`` bytes."""
        if self._marks or not isinstance(index, Block) or len(self._boxes) == MOST_BOXES:
            self.marks()
            self._put(index, size, who, actor.when, lanes_of_units(actor.lanes, index, size))
            return
        self._number += 1
        read = _Read(self._number, who, actor.when)
        last, before = self._boxes.get(index, (None, None))
        gone = last if last and last.who == who else before
        if gone and _is_another(gone.who, gone.when, who, actor.when):
            self._boxes_forgotten.add(index)
        self._boxes[index] = read, before if last and last.who == who else last

    def marks(self) -> list[Grains]:
        """The marks of the last reads, and of the last ones before by other agents."""
        reads = [(read, box) for box, kept in self._boxes.items() for read in kept if read]
        self._boxes.clear()
        for read, box in sorted(reads):
            self._put(box, WORD, read.who, read.when, 0)
        for box in self._boxes_forgotten:
            self._forget(bytes_of(box, WORD))
        self._boxes_forgotten.clear()
        return self._marks

    def are_forgotten(self, offsets: np.ndarray) -> bool:
        """Whether of one of the bytes a read by another cluster or line is kept no more."""
        return self._forgotten is not None and any_of(self._forgotten[offsets])

    def _forget(self, offsets: np.ndarray) -> None:
        if self._forgotten is None:
            self._forgotten = np.zeros(self._size, bool)
        self._forgotten[offsets] = True

    def _put(self, index: Cells, size: int, who: int, when: int, lanes: np.ndarray | int) -> None:
        if not self._marks:
            self._marks = [Grains(self._size, np.int64, np.int64, np.uint8) for _ in range(2)]
        self._note_forgotten(index, size, who, when)
        self._keep_other(index, size, who)
        self._marks[0].put(index, size, who, when, lanes)

    def _note_forgotten(self, index: Cells, size: int, own: int, now: int) -> None:
        last, before = self._marks
        if last.is_blank(index, size):
            return
        who, when, _ = last.fine(index, size)
        if not any_of(who):
            return
        older, then, _ = before.fine(index, size)
        repeated = who == own
        who, when = np.where(repeated, who, older), np.where(repeated, when, then)
        gone = (who != 0) & _is_another(who, when, own, now)
        if any_of(gone):
            self._forget(bytes_of(index, size)[gone])

    def _keep_other(self, index: Cells, size: int, own: int) -> None:
        """The last reads of these cells become the ones before, if other agents did them."""
        last, before = self._marks
        cells, unit, marks = index, size, last.coarse(index, size)
        if marks is None:
            cells, unit, marks = bytes_of(index, size), 1, last.fine(index, size)
        elif size > WORD:
            words = words_of(index, size)
            assert words is not None  # the cells are no smaller
            cells, unit = words, WORD
        who, when, lanes = marks
        others = (who != own) & (who != 0)
        if all_of(others):
            before.put(cells, unit, who, when, lanes)
        elif any_of(others):
            cells = cells.index().reshape(who.shape) if isinstance(cells, Block) else cells
            before.put(cells[others], unit, who[others], when[others], lanes[others])


def _is_another(who: Any, when: Any, own: int, now: int) -> Any:
    """Whether another cluster or line of PTX reads there."""
    apart = abs(who) >> CLUSTER_SHIFT != abs(own) >> CLUSTER_SHIFT
    return apart | ((when ^ now) & (1 << LINE_BITS) - 1 != 0)

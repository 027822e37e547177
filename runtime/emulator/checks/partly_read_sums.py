"""Sums of products of which tcgen05.ld reads a part and, in the whole launch, never the rest.

No rule of PTX says that all lanes and columns of an accumulator are read. A load with a wrong lane,
column or shape takes sums of another place twice, and the result is wrong. What lies past the edge
of a tile need not be read: it ends the lanes or the columns, or is zero. So it tells where sums
are replaced or given up that nobody has read at that place of any tile, though others behind them
were, of higher lanes and of higher columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interface import Cta, Launch
from ..tensor.spans import HALF_LANES, Span
from ..tensor.tensor_engine import tensor_engine


@dataclass
class _Place:
    """Accumulators of one shape, each bool[lanes, columns]; line: of a product that wrote one.

    lost: not zero, not NaN and unread when it was replaced or given up.
    """

    line: int
    read: Any
    lost: Any


class PartlyReadSums:
    """By lanes and the number of columns, what has been read of accumulators that are gone."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._places: dict[tuple[int, int, int, int | None], _Place] = {}

    def gone(self, cta: Cta, span: Span, read: np.ndarray, line: int) -> None:
        """Sums are about to be replaced or given up; read: bool[lanes, columns]."""
        key = span.lane, span.lane_end, span.column_end - span.column, span.half
        place = self._places.setdefault(key, _Place(line, np.zeros_like(read), np.zeros_like(read)))
        place.read |= read
        if read.all():
            return
        rows, columns = slice(span.lane, span.lane_end), slice(span.column, span.column_end)
        words = tensor_engine(cta).memory.part(rows, columns)
        sums = words.view(np.float32)
        lost = ~read & (words << 1 != 0) & (sums == sums)
        if span.half is not None:
            lost &= (np.arange(span.lane, span.lane_end) // HALF_LANES % 2 == span.half)[:, None]
        if lost.any():
            place.lost |= lost
            place.line = line

    def tell(self) -> None:
        """Warn of what nobody has read, at the end of a launch."""
        for (lane, *_), place in self._places.items():
            left = place.lost & ~place.read
            left[_last(place.read.any(1)) :] = False
            left[:, _last(place.read.any(0)) :] = False
            if left.any():
                row, column = np.argwhere(left)[0].tolist()
                self._launch.report.warn(
                    "partly-read-sums",
                    f"ptx:{place.line}: of the sums of this tcgen05.mma no tcgen05.ld of the launch"
                    f" has read {int(left.sum())} of {left.size}, lane {lane + row} of column"
                    f" {column} first, beside others of higher lanes and columns; they are not 0",
                )


def read_of(span: Span) -> np.ndarray:
    """bool[lanes, columns] of an accumulator of which nothing has been read."""
    return np.zeros((span.lane_end - span.lane, span.column_end - span.column), bool)


def mark(read: np.ndarray, span: Span, part: Span) -> None:
    """A tcgen05.ld has read a part of an accumulator."""
    read[
        max(part.lane - span.lane, 0) : max(part.lane_end - span.lane, 0),
        max(part.column - span.column, 0) : max(part.column_end - span.column, 0),
    ] = True


def _last(read: np.ndarray) -> int:
    """The last index that is true, 0 if there is none."""
    return int(np.flatnonzero(read)[-1]) if read.any() else 0

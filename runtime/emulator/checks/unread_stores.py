"""What tcgen05.st writes to tensor memory, and nobody reads in the whole launch.

No rule of PTX says that it is read. An operand, or scale factors, that are stored in other columns
or lanes than products take them from leave these as they were. A place counts by its distance from
the beginning of its allocation. Zeros need no reader: a kernel may clear what products replace.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..interface import Cta, Launch, Warp
from ..machine.events import Listener
from ..tensor.spans import Claim, Span
from ..tensor.tensor_engine import tensor_engine
from ..tensor.tensor_memory import COLUMNS, LANES

CATEGORY = "unread-store"


class UnreadStores(Listener):
    """By lane and column of allocations whether anybody has read there, and the PTX line of a
    tcgen05.st whose words, not all zero, were replaced or given up unread."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._read = np.zeros((LANES, COLUMNS), bool)
        self._lost = np.zeros((LANES, COLUMNS), np.int32)
        self._stored: dict[Cta, list[tuple[Span, int]]] = defaultdict(list)

    def columns_used(self, cta: Cta, warp: Warp, claim: Claim, fences: bool) -> None:
        stored = self._stored.get(cta)
        if claim.what == "tcgen05.st":
            self._replaced(cta, claim.span)
            line = warp.program.source[warp.split.pc].line
            self._stored[cta].append((claim.span, line))
        elif claim.what == "tcgen05.dealloc":
            self._replaced(cta, claim.span)
        elif stored:
            self._read[self._place(cta, claim.span)] = True
            stored[:] = [each for each in stored if not each[0].meets(claim.span)]

    def columns_freed(self, cta: Cta, span: Span) -> None:
        self._stored.pop(cta, None)

    def _replaced(self, cta: Cta, span: Span) -> None:
        """Stores that nobody has read are about to be lost."""
        stored = self._stored.get(cta, [])
        for before, line in [each for each in stored if each[0].meets(span)]:
            stored.remove((before, line))
            rows = slice(before.lane, before.lane_end)
            words = tensor_engine(cta).memory.part(rows, slice(before.column, before.column_end))
            lost = self._lost[self._place(cta, before)]
            lost[words != 0] = line

    def _place(self, cta: Cta, span: Span) -> tuple[slice, slice]:
        allocations = tensor_engine(cta).memory.allocations
        first = max((start for start in allocations if start <= span.column), default=0)
        return slice(span.lane, span.lane_end), slice(span.column - first, span.column_end - first)

    def finished(self) -> None:
        left = np.where(self._read, 0, self._lost)
        if self._launch.report.workers > 1 or not left.any():
            return
        (lane, column), count = np.argwhere(left)[0].tolist(), np.count_nonzero(left)
        self._launch.report.warn(
            CATEGORY,
            f"ptx:{left[lane, column]}: nobody in the launch has read {count} words of tensor"
            f" memory that tcgen05.st wrote, lane {lane} of column {column} of its"
            " allocation first; they are not 0",
        )

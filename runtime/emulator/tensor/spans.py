"""Parts of tensor memory, and accesses to them that are under way."""

from __future__ import annotations

from typing import NamedTuple

from ..interface import EngineOp

HALF_LANES = 16
"""Half of the 32 lanes that one warp reaches."""


Shape = tuple[int, int, int] | tuple[str, int, int, int]


class Span(NamedTuple):
    """A rectangle of tensor memory: lanes [lane, lane_end), columns [column, column_end).

    half: of each 32 lanes only the lower (0) or upper (1) 16, as an accumulator of M=64 has them.
    """

    lane: int
    lane_end: int
    column: int
    column_end: int
    half: int | None = None

    def meets(self, other: Span) -> bool:
        """Whether the rectangles overlap."""
        return (
            self.column < other.column_end
            and other.column < self.column_end
            and self.lane < other.lane_end
            and other.lane < self.lane_end
            and bool(self._halves & other._halves)
        )

    @property
    def _halves(self) -> int:
        if self.half is not None:
            return 1 << self.half
        if self.lane_end - self.lane > HALF_LANES:
            return 0b11
        return 1 << self.lane // HALF_LANES % 2


class Access(NamedTuple):
    """An asynchronous access that is not known to be complete.

    ``shape`` is the accumulator's (first column, m, n) for an mma's D, the same behind "A" for an
    operand A that the mma shifts, None otherwise; ``op`` is None for ld and st, which only a wait
    ends. ``reads``: it does not write the span; adds: of an mma's D, whether it adds to what is
    there, None if it leaves lanes as they are.
    """

    name: str
    span: Span
    line: int
    warp: int
    op: EngineOp | None = None
    shape: Shape | None = None
    reads: bool = False
    rank: int = 0
    adds: bool | None = None

    @property
    def who(self) -> tuple[int, int]:
        """The warp among those of the cluster: (rank, index)."""
        return self.rank, self.warp


class Claim(NamedTuple):
    """What is about to be accessed. against: the names of accesses under way that may not meet it.

    Two reads never conflict. An mma on the same accumulator and ``shape`` is pipelined behind the
    earlier one; ``behind_products_of`` a warp, see `TensorEngine.products_before`; behind_reads_of:
    a warp whose products run in the order of issue, so that this one may replace what earlier ones
    read as operand A.
    """

    span: Span
    what: str
    against: tuple[str, ...]
    shape: Shape | None = None
    reads: bool = False
    behind_products_of: tuple[int, int] | None = None
    behind_reads_of: tuple[int, int] | None = None

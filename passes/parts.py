"""Parts of a tile's rows, as the threads of a team share them out.

for number = thread .. parts step count * threads
  (number / parts in a row, number % parts in a row), and count - 1 more, threads apart
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..dialects.layout import LINEAR, TileLayout
from ..dialects.mlir import ir
from . import build
from .team import Team

PARTS_MAX = 8
"""Written out in one pass of a loop."""
Part = tuple[ir.Value, ir.Value]


@contextmanager
def parts_of(team: Team, layout: TileLayout, size: int, most: int) -> Iterator[list[Part]]:
    """Emit the body for every (row, `size` bytes of it), up to `most` at a time in each thread.

    Neighbouring threads take neighbouring parts of global memory where their number in a row is a
    power of two, or the layout is linear; else each takes whole rows, so that no K step divides.
    """
    in_row = layout.contiguous * layout.element_bytes // size
    if in_row & (in_row - 1) == 0 or layout.swizzle == LINEAR:
        parts = layout.rows * in_row
        count = _at_a_time(parts // team.threads if parts % team.threads == 0 else 1, most)
        with build.loop(team.thread, parts, count * team.threads) as first:
            each = [first + index * team.threads for index in range(count)]
            yield [(part // in_row, part % in_row) for part in each]
        return
    count = _at_a_time(in_row, most)
    with (
        build.loop(team.thread, layout.rows, team.threads) as row,
        build.loop(build.constant(0), in_row, count) as column,
    ):
        yield [(row, column + index) for index in range(count)]


def _at_a_time(parts: int, most: int) -> int:
    """The largest divisor of `parts` up to `most`."""
    return max(count for count in range(1, most + 1) if parts % count == 0)

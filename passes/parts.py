"""Parts of a tile's rows, as the threads of a team divide them.

for number = thread .. parts step count * threads
  (number / parts in a row, number % parts in a row), and count - 1 more, threads apart
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def for_parts(
    team: Team, layout: TileLayout, size: int, most: int, emit: Callable[[list[Part]], None]
) -> None:
    """As `parts_of`; where no number near `most` divides those of a thread, `emit` is asked for the
    last ones by themselves: 26 are three times 8, and 2.
    """
    in_row = layout.contiguous * layout.element_bytes // size
    each, left = divmod(layout.rows * in_row, team.threads)
    near = 2 * _at_a_time(each, most) >= most if each else True
    if near or left or in_row & (in_row - 1):
        with parts_of(team, layout, size, most) as parts:
            emit(parts)
        return
    whole = each - each % most
    if whole:
        with build.loop(team.thread, whole * team.threads, most * team.threads) as first:
            emit([_part(first, index * team.threads, in_row) for index in range(most)])
    emit([_part(team.thread, index * team.threads, in_row) for index in range(whole, each)])


def _part(first: ir.Value, behind: int, in_row: int) -> Part:
    part = build.as_value(first + behind)
    return part // in_row, part % in_row


def _at_a_time(parts: int, most: int) -> int:
    """The largest divisor of `parts` up to `most`."""
    return max(count for count in range(1, most + 1) if parts % count == 0)

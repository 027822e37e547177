"""Which elements of a tile of C each thread computes, on CUDA cores.

The threads are a grid of `rows` by `columns` over the tile, and each has `m` by `n` elements. Along
an axis they are dealt out in groups of neighbours, one group to each thread in turn:

    element of thread t, number e    (e // group * threads + t) * group + e % group

so that threads side by side read shared memory side by side. A group is one element where the
operand's tile is K-major, and a vector of it where it is MN-major.

Where `lanes` threads share each element, they count as one in this, and each has all rows of the
tile: what is read of B is read once.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from .layout import UNIT_BYTES
from .record import record

WARP_ROWS, WARP_COLUMNS = 4, 8


@record
class ThreadTile:
    """A grid of `rows` by `columns` threads, each with `m` by `n` elements in groups."""

    rows: int
    columns: int
    m: int
    n: int
    m_group: int = 1
    n_group: int = 1
    lanes: int = 1

    @staticmethod
    def of(tile_m: int, tile_n: int, threads: int) -> ThreadTile | None:
        """The grid for a tile: as few elements a thread as `threads` allow, as square as can be.

        None where `threads` are too few to have a divisor of the tile each.
        """
        return _thread_tile(tile_m, tile_n, threads)

    @staticmethod
    def of_lanes(tile_m: int, tile_n: int, threads: int, lanes: int, products: int) -> ThreadTile:
        """The grid where `lanes` threads share each element: as few columns each as can be.

        Of two products each has half of the columns, and a thread as many of the one as of the
        other.
        """
        each, most = tile_n // products, threads // lanes
        columns = max(count for count in _divisors(each) if count <= most)
        return ThreadTile(1, columns, tile_m, products * (each // columns), lanes=lanes)

    @property
    def threads(self) -> int:
        """Threads that have elements; those beyond have none."""
        return self.rows * self.columns * self.lanes

    @property
    def is_warps(self) -> bool:
        """Whether a warp is a block of 4x8 threads, else 32 along N and then the next row.

        A block reads fewer rows and columns of shared memory for as many products.
        """
        blocks = self.rows % WARP_ROWS == 0 and self.columns % WARP_COLUMNS == 0
        return blocks and self.m * self.n > 1 and self.lanes == 1

    def grouped(self, a_major: str, b_major: str, element_bytes: int) -> ThreadTile:
        """The same with the groups that operands of these majors are read in."""
        m_group = vector_of(self.m, element_bytes) if a_major == "mn" else 1
        n_group = vector_of(self.n, element_bytes) if b_major == "mn" else 1
        return replace(self, m_group=m_group, n_group=n_group)

    def row_starts(self) -> list[int]:
        """Each of the thread's rows, after its first."""
        return _starts(self.m, self.rows, self.m_group)

    def column_starts(self) -> list[int]:
        """Each of its columns, after its first."""
        return _starts(self.n, self.columns, self.n_group)


def vector_of(count: int, element_bytes: int) -> int:
    """Elements of the widest load, up to 16 bytes, whose number divides `count`."""
    width = UNIT_BYTES // element_bytes
    while count % width:
        width //= 2
    return width


def _starts(count: int, threads: int, group: int) -> list[int]:
    return [each // group * threads * group + each % group for each in range(count)]


@functools.cache
def _thread_tile(tile_m: int, tile_n: int, threads: int) -> ThreadTile | None:
    found = [
        ThreadTile(tile_m // m, tile_n // n, m, n)
        for m in _divisors(tile_m)
        for n in _divisors(tile_n)
        if tile_m // m * (tile_n // n) <= threads
    ]
    # The last two settle ties: whole warps of 4x8, then rows, of which A's loads are shared.
    return min(
        found,
        key=lambda each: (each.m * each.n, each.m + each.n, not each.is_warps, each.n),
        default=None,
    )


def _divisors(extent: int) -> list[int]:
    return [each for each in range(1, extent + 1) if extent % each == 0]

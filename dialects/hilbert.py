"""A Hilbert curve through a rectangle of any size: consecutive cells are adjacent.

The rectangle is cut in halves until a row is left, each part entered where the part before it ends:

    +--------+           +--------+
    | across |           |        |       long: two parts      other: up, across, down
    +---+----+           |   |    |
    | up|down|           |   |    |       a path starts at (0, 0) and ends at the other end of its
    +---+----+           +---+----+       first axis

An end on the far corner of an axis needs an even number of cells there, or an odd number in all; so
cuts are at even places, and the first axis is the longer one unless only the shorter is even.
"""

from __future__ import annotations

CELLS_MAX = 65536  # a table of 256 KiB in the kernel's module, both coordinates in 16 bits

Path = tuple[tuple[int, int], ...]


def hilbert_curve(m: int, n: int) -> Path:
    """The m·n cells (along M, along N) of a rectangle, each once, each beside the one before."""
    longer, shorter = max(m, n), min(m, n)
    along_longer = longer % 2 == 0 or shorter % 2 == 1
    if along_longer == (m >= n):
        return _path(m, n)
    return _swapped(_path(n, m))


def _path(x: int, y: int) -> Path:
    """From (0, 0) to (x - 1, 0)."""
    if y == 1:
        return tuple((i, 0) for i in range(x))
    if 2 * x > 3 * y:
        left = x // 2 + x // 2 % 2
        return _path(left, y) + _moved(_path(x - left, y), left, 0)
    left, low = x // 2, y // 2
    if y > 2:
        low += low % 2
    up, down = _path(low, left), _path(low, x - left)
    across = _moved(_path(x, y - low), 0, low)
    return _swapped(up) + across + tuple((x - 1 - j, low - 1 - i) for i, j in down)


def _swapped(path: Path) -> Path:
    return tuple((j, i) for i, j in path)


def _moved(path: Path, x: int, y: int) -> Path:
    return tuple((i + x, j + y) for i, j in path)

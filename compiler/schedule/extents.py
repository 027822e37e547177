"""Extents of tiles: rounding, and contiguity."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from ...dialects.layout import TileLayout, widest_swizzle


def round_up(value: int, unit: int) -> int:
    """The least multiple of `unit` that is at least `value`."""
    return -(-value // unit) * unit


@functools.cache
def widest_layout(mn: int, k: int, element_bytes: int, major: str) -> TileLayout:
    plain = TileLayout(mn, k, element_bytes, major)
    return replace(plain, swizzle=widest_swizzle(plain))


def expected_tiles(rows: int, groups: int, tile: int) -> int:
    """The expected number of tiles of groups that have `rows` rows in total. A group may end
    anywhere, so its last tile is half full on average; every group has at least one tile."""
    return max(min(groups, rows), math.ceil(rows / tile + groups / 2))

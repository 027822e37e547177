"""Extents of tiles: rounding, and contiguity."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from ...dialects.layout import TileLayout, widest_swizzle


def round_up(value: int, unit: int) -> int:
    """The least multiple of `unit` from `value` on."""
    return -(-value // unit) * unit


@functools.cache
def widest_layout(mn: int, k: int, element_bytes: int, major: str) -> TileLayout:
    plain = TileLayout(mn, k, element_bytes, major)
    return replace(plain, swizzle=widest_swizzle(plain))


def expected_tiles(rows: int, groups: int, tile: int) -> int:
    """Tiles of so many rows of groups that have `rows` together: a group ends anywhere, so that its
    last tile is half full on average; it has one at least."""
    return max(min(groups, rows), math.ceil(rows / tile + groups / 2))

"""Extents of tiles: rounded up, and how they lie."""

from __future__ import annotations

import functools
from dataclasses import replace

from ...dialects.layout import TileLayout, widest_swizzle


def round_up(value: int, unit: int) -> int:
    """The least multiple of `unit` from `value` on."""
    return -(-value // unit) * unit


@functools.cache
def widest_layout(mn: int, k: int, element_bytes: int, major: str) -> TileLayout:
    plain = TileLayout(mn, k, element_bytes, major)
    return replace(plain, swizzle=widest_swizzle(plain))

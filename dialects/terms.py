"""The bf16 terms of f32 tiles, which threads write to shared memory for MMAs (`MmaUnit.splits`).

    top       all that bf16 holds of an element
    first     the same, 0 of what is no number
    second    of what is left of a number, times 2^8
    third     of what is left of that, times 2^8

Top, first and second are cut off, and third holds the rest: first + second / 2^8 + third / 2^16 is
the element. Threads write the terms of a step while MMAs multiply those of the step before, so that
each tile has them twice.
"""

from __future__ import annotations

from dataclasses import replace

from .dtypes import DTYPES
from .layout import TileLayout, widest_swizzle

TERM_DTYPE = DTYPES["bf16"]
TERMS = TOP, FIRST, SECOND, THIRD = range(4)
TERM_SLOTS = 2
SHIFT = 8
"""Bits by which each term is moved up: as many as bf16 has digits."""
DEPTHS = (16, 32)
"""Elements of K that MMAs sum before threads add them: sums of more would be less exact."""
NINE_PRODUCTS = (
    ((THIRD, THIRD),),
    ((THIRD, SECOND), (SECOND, THIRD)),
    ((THIRD, FIRST), (SECOND, SECOND), (FIRST, THIRD)),
    ((SECOND, FIRST), (FIRST, SECOND)),
    ((TOP, TOP),),
)
"""The terms of A and of B that are multiplied, by powers of 2^-8, the least first."""


def term_layout(tile: TileLayout) -> TileLayout:
    """How each term of a tile lies: K-major, in the widest swizzle."""
    layout = TileLayout(tile.mn, tile.k, TERM_DTYPE.bytes, "k")
    return replace(layout, swizzle=widest_swizzle(layout))


def term_bytes(mn: int, k: int) -> int:
    """Shared memory of all terms of the tiles of an operand."""
    layout = term_layout(TileLayout(mn, k, 4, "k"))
    return TERM_SLOTS * len(TERMS) * layout.slot_bytes

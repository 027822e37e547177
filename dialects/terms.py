"""The bf16 terms of f32 tiles, which threads make for MMAs (`MmaUnit.splits`).

Where the MMA divides what it adds to (tcgen05), A and B have terms that are moved up:

    top       all that bf16 holds of an element
    first     the same, 0 of what is no number
    second    of what is left of a number, times 2^8
    third     of what is left of that, times 2^8

Top, first and second are cut off, and third holds the rest: first + second / 2^8 + third / 2^16 is
the element. Threads write the terms of a step while MMAs multiply those of the step before, so that
each tile has them twice.

Where it does not (wgmma), there are plain ones: first, second and third of the magnitude that they
stand for, which add up to an element that ends above 2^-133. Those of A are in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
PLAIN_TERMS = PLAIN_FIRST, PLAIN_SECOND, PLAIN_THIRD = range(3)
PLAIN_PRODUCTS = (
    (PLAIN_THIRD, PLAIN_THIRD),
    (PLAIN_THIRD, PLAIN_SECOND),
    (PLAIN_SECOND, PLAIN_THIRD),
    (PLAIN_THIRD, PLAIN_FIRST),
    (PLAIN_SECOND, PLAIN_SECOND),
    (PLAIN_FIRST, PLAIN_THIRD),
    (PLAIN_SECOND, PLAIN_FIRST),
    (PLAIN_FIRST, PLAIN_SECOND),
    (PLAIN_FIRST, PLAIN_FIRST),
)
"""The plain terms of A and of B that are multiplied, the least product first."""


@dataclass(frozen=True)
class TermForm:
    """What of an operand's terms lies in shared memory: how many of each tile, in how many slots,
    and whether those of A do."""

    terms: int
    slots: int
    of_a: bool


MOVED_UP = TermForm(len(TERMS), TERM_SLOTS, True)
PLAIN = TermForm(len(PLAIN_TERMS), 3, False)


def term_layout(tile: TileLayout) -> TileLayout:
    """How each term of a tile lies: K-major, in the widest swizzle."""
    layout = TileLayout(tile.mn, tile.k, TERM_DTYPE.bytes, "k")
    return replace(layout, swizzle=widest_swizzle(layout))


def term_bytes(mn: int, k: int, form: TermForm) -> int:
    """Shared memory of all terms of the tiles of an operand."""
    layout = term_layout(TileLayout(mn, k, 4, "k"))
    return form.slots * form.terms * layout.slot_bytes

"""The narrower terms into which threads split f32 tiles for MMAs (`MmaUnit.splits`).

Those of `bf16x9` are bf16. Where the MMA divides what it adds to (tcgen05), A and B have terms
that are moved up:

    top       all that bf16 holds of an element
    first     the same, 0 of what is no number
    second    of what is left of a number, times 2^8
    third     of what is left of that, times 2^8

Top, first and second are cut off, and third holds the rest: first + second / 2^8 + third / 2^16 is
the element. Threads write the terms of a step while MMAs multiply those of the step before, so that
each tile has them twice.

Where it does not (wgmma), there are plain ones: first, second and third of the magnitude that they
stand for, which add up to an element that ends above 2^-133. Those of A are in registers.

Those of `3xtf32` are two: high is the element rounded to tf32, low what is left, rounded so.
"""

from __future__ import annotations

from dataclasses import replace

from .dtypes import DTYPES, DType
from .layout import TileLayout, widest_swizzle
from .record import record

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
ROUNDED_TERMS = HIGH, LOW = range(2)
THREE_PRODUCTS = (((LOW, HIGH), (HIGH, LOW), (HIGH, HIGH)),)
"""The two terms of tf32 that are multiplied, all but the small ones by each other: one power."""
Products = tuple[tuple[tuple[int, int], ...], ...]


@record
class TermForm:
    """What of an operand's terms lies in shared memory: how many of each tile, in how many slots,
    whether those of A do, and the type of their elements. `products` are the terms of A and of B
    that are multiplied, by powers of 2^-8, the least first."""

    terms: int
    slots: int
    of_a: bool
    products: Products
    dtype: DType = TERM_DTYPE

    @property
    def mmas(self) -> int:
        """How many products of terms make up one."""
        return sum(map(len, self.products))


MOVED_UP = TermForm(len(TERMS), TERM_SLOTS, True, NINE_PRODUCTS)
PLAIN = TermForm(len(PLAIN_TERMS), 3, False, (PLAIN_PRODUCTS,))
ROUNDED = TermForm(len(ROUNDED_TERMS), TERM_SLOTS, True, THREE_PRODUCTS, DTYPES["tf32"])
FORMS = MOVED_UP, PLAIN, ROUNDED


def term_layout(tile: TileLayout, form: TermForm) -> TileLayout:
    """How each term of a tile lies: K-major, in the widest swizzle."""
    layout = TileLayout(tile.mn, tile.k, form.dtype.bytes, "k")
    return replace(layout, swizzle=widest_swizzle(layout))


def term_bytes(mn: int, k: int, form: TermForm) -> int:
    """Shared memory of all terms of the tiles of an operand."""
    layout = term_layout(TileLayout(mn, k, 4, "k"), form)
    return form.slots * form.terms * layout.slot_bytes

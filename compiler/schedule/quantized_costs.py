"""The cost of a C with block scales: stored bytes and instructions.

Elements are packed. A scale is a byte for each block of a row, and threads store those of up to
four blocks as one word. Neighbouring rows' words lie 16 bytes apart in an atom, so that a word
costs as much of a sector.
"""

from __future__ import annotations

import math

from ...dialects.dtypes import DTYPES, SCALE_ATOM_BLOCKS, ScaledFormat

WORD_PITCH = 16
INSTRUCTIONS = {"ue8m0": {8: 3, 6: 4, 4: 3}, "ue4m3": {4: 7}}
"""Of an element, by type of scale and bits: 2.3, 3.1 and 6.9 were counted in the SASS of mxfp8,
mxfp4 and nvfp4 beside a plain store."""


def bits_of(form: ScaledFormat) -> int:
    """Those of an element."""
    return DTYPES[form.element].bits


def instructions(form: ScaledFormat | None) -> int:
    """About those that make an element and its part of a scale of a sum."""
    return INSTRUCTIONS[form.scale][bits_of(form)] if form else 0


def scale_bytes(rows: int, columns: int, together: int, form: ScaledFormat) -> float:
    """What the stores of a tile's scales cost, as bytes; so many columns are stored together."""
    blocks = columns // form.block
    return WORD_PITCH * rows * blocks / math.gcd(SCALE_ATOM_BLOCKS, max(1, together // form.block))

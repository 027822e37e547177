"""The cost of a C with block scales: bytes stored and instructions.

Elements are packed. Each block of a row has a scale of one byte, and threads store the scales of up
to four blocks as one word. The words of neighbouring rows lie 16 bytes apart in an atom, so that a
word takes as much of a sector.
"""

from __future__ import annotations

import math

from ...dialects.dtypes import DTYPES, SCALE_ATOM_BLOCKS, ScaledFormat

WORD_PITCH = 16
INSTRUCTIONS = {"ue8m0": {8: 3, 6: 4, 4: 3}, "ue4m3": {4: 7}}
"""Instructions per element by type of scale and element bits: 2.3, 3.1 and 6.9 were counted in the
SASS of mxfp8, mxfp4 and nvfp4 compared with a plain store."""


def bits_of(form: ScaledFormat) -> int:
    """Bits of an element of the format."""
    return DTYPES[form.element].bits


def instructions(form: ScaledFormat | None) -> int:
    """The approximate number of instructions that turn a sum into an element and its share of a
    scale."""
    return INSTRUCTIONS[form.scale][bits_of(form)] if form else 0


def scale_bytes(rows: int, columns: int, together: int, form: ScaledFormat) -> float:
    """What storing the scales of a tile costs, expressed in bytes, if `together` columns are stored
    at a time."""
    blocks = columns // form.block
    return WORD_PITCH * rows * blocks / math.gcd(SCALE_ATOM_BLOCKS, max(1, together // form.block))

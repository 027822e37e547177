"""How many bytes a thread copies at once, as the rows of an operand allow."""

from __future__ import annotations

import math

from ..dialects.layout import UNIT_BYTES, TileLayout
from ..dialects.mlir import ir
from ..dialects.tile import CopyOp

# cp.async copies 4, 8 or 16 bytes (PTX ISA, cp.async).
ASYNC_BYTES_MIN = 4


def copy_bytes(layout: TileLayout, view: ir.MemRefType) -> int:
    """The widest power of two up to 16 that divides the pitch and length of rows, in bytes.

    It also divides the rows of the tile, which are whole units in all layouts but the linear one.
    """
    inner = 1 if layout.major == "k" else 0
    strides, _ = view.get_strides_and_offset()
    lengths = (strides[1 - inner], view.shape[inner], layout.contiguous)
    return math.gcd(UNIT_BYTES, *(length * layout.element_bytes for length in lengths))


def is_asynchronous(op: CopyOp) -> bool:
    """Whether threads can copy the tile with cp.async."""
    return copy_bytes(op.tile.type.layout, op.view.type) >= ASYNC_BYTES_MIN

"""How many bytes threads copy at once, by the alignment of rows."""

from __future__ import annotations

import math

from ..dialects.layout import CORE_ROWS, LINEAR, UNIT_BYTES, TileLayout
from ..dialects.mlir import ir
from ..dialects.tile import CopyOp
from ..dialects.tile_types import extent_of, is_padded
from .batches import step_bytes
from .dynamic_rows import rows_multiple
from .groups import columns_of_group, gathered_of

# cp.async copies 4, 8 or 16 bytes (PTX ISA, cp.async).
ASYNC_BYTES_MIN = 4
SHIFTED_UNITS = 2  # of a thread in a row that is shifted
OFFSET_MAX = 2**31 - 1  # bytes, as 32 bits


def copy_bytes(layout: TileLayout, value: ir.Value[ir.MemRefType]) -> int:
    """The widest power of two up to 16 that divides the pitch and length of rows, in bytes.

    It also divides the bytes from matrix to matrix of a stack, and the rows of the tile, which are
    whole units in all layouts but the linear one.
    """
    view = value.type
    if layout.is_of_scales or is_padded(view.element_type):
        return UNIT_BYTES
    inner = 1 if layout.major == "k" else 0
    strides, _ = view.get_strides_and_offset()
    row = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    lengths = strides[1 - inner], extent_of(view, inner)
    known = [rows_multiple(row) if length < 0 else length for length in lengths]
    sizes = (length * layout.element_bytes for length in (*known, layout.contiguous))
    return math.gcd(UNIT_BYTES, *sizes, step_bytes(value))


def is_asynchronous(op: CopyOp) -> bool:
    """Whether threads can copy the tile with cp.async."""
    return copy_bytes(op.tile.type.layout, op.view) >= ASYNC_BYTES_MIN


def is_shifted(op: CopyOp, threads: int) -> bool:
    """Whether threads copy the tile by aligned units, whose bytes they shift in registers.

    They do where rows are too narrow for cp.async, and their number is known. Rows of a thread
    must be whole swizzle patterns and whole units apart, and a row of the view at least a unit.
    """
    layout, view = op.tile.type.layout, op.view.type
    in_row, rest = divmod(layout.contiguous * layout.element_bytes, SHIFTED_UNITS * UNIT_BYTES)
    linear = layout.swizzle == LINEAR
    dynamic = not view.has_static_shape or columns_of_group(op.view) is not None
    dynamic = dynamic or gathered_of(op.view) is not None
    if is_asynchronous(op) or linear or rest or threads % in_row or dynamic:
        return False
    step, inner = threads // in_row, 1 if layout.major == "k" else 0
    strides, _ = view.get_strides_and_offset()
    rows, pitch = view.shape[1 - inner], strides[1 - inner] * layout.element_bytes
    size = (rows - 1) * pitch + view.shape[inner] * layout.element_bytes
    beyond = (rows + layout.rows + step) * pitch + layout.contiguous * layout.element_bytes
    return (
        step % CORE_ROWS == 0
        and step * pitch % UNIT_BYTES == 0
        and step_bytes(op.view) % UNIT_BYTES == 0
        and min(pitch, size - UNIT_BYTES) >= UNIT_BYTES
        and beyond <= OFFSET_MAX
    )

"""Addresses of 16-byte units in a tile of shared memory, and of scale atoms along MN."""

from __future__ import annotations

from ....dialects.layout import LINEAR, SCALE_ATOM_ROWS, SPAN_BYTES, TileLayout
from ....dialects.mlir import arith, ir
from ... import build
from ...copy_width import UNIT_BYTES


def unit_offset(layout: TileLayout, row: ir.Value, column: ir.Value) -> ir.Value:
    """Byte offset of a unit in the tile, swizzled (the tile starts on its pattern)."""
    in_chunk = layout.span_bytes // UNIT_BYTES
    chunk = column // in_chunk * layout.chunk_bytes
    within = row * layout.span_bytes + chunk
    if in_chunk > 1:
        within = within + column % in_chunk * UNIT_BYTES
    if layout.swizzle in ("none", LINEAR):
        return within
    mask = SPAN_BYTES[layout.swizzle] // UNIT_BYTES - 1
    line = arith.andi(within // 128, build.constant(mask))
    return within ^ line * UNIT_BYTES


def first_atom(layout: TileLayout, index: ir.Value) -> ir.Value:
    """The atom along MN that the scales of the tile of that index begin in."""
    whole, rest = divmod(layout.mn, SCALE_ATOM_ROWS)
    place = build.as_i32(index)
    return place * layout.mn // SCALE_ATOM_ROWS if rest else place * whole

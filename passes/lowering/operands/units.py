"""Addresses of 16-byte units in a tile of shared memory, and of scale atoms along MN."""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.layout import BANK_LINE_BYTES, LINEAR, SCALE_ATOM_ROWS, SPAN_BYTES, TileLayout
from ....dialects.mlir import arith, ir
from ... import build
from ...copy_width import UNIT_BYTES


class Line(NamedTuple):
    """A row of a tile: its first byte in the first chunk, and the bits that its swizzle flips."""

    start: ir.Value
    swizzle: ir.Value | None


def line_of(layout: TileLayout, row: ir.Value) -> Line:
    """The line of a row. Chunks are whole patterns, so that those of a swizzle begin alike."""
    start = row * layout.span_bytes
    if layout.swizzle in ("none", LINEAR):
        return Line(start, None)
    mask = SPAN_BYTES[layout.swizzle] // UNIT_BYTES - 1
    return Line(start, arith.andi(start // BANK_LINE_BYTES, build.constant(mask)) * UNIT_BYTES)


def unit_of(layout: TileLayout, line: Line, column: ir.Value) -> ir.Value:
    """Byte offset of a unit of a line, swizzled (the tile starts on its pattern)."""
    in_chunk = layout.span_bytes // UNIT_BYTES
    within = line.start
    if layout.chunks > 1:
        within = within + column // in_chunk * layout.chunk_bytes
        column = column % in_chunk if in_chunk > 1 else column
    if in_chunk > 1:
        within = within + column * UNIT_BYTES
    return within if line.swizzle is None else within ^ line.swizzle


def unit_offset(layout: TileLayout, row: ir.Value, column: ir.Value) -> ir.Value:
    """Byte offset of a unit in the tile, swizzled (the tile starts on its pattern)."""
    return unit_of(layout, line_of(layout, row), column)


def first_atom(layout: TileLayout, index: ir.Value) -> ir.Value:
    """The atom along MN that the scales of the tile of that index begin in."""
    whole, rest = divmod(layout.mn, SCALE_ATOM_ROWS)
    place = build.as_i32(index)
    return place * layout.mn // SCALE_ATOM_ROWS if rest else place * whole

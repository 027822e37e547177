"""Writes of a piece of elements with block scales to its buffer: bytes, 16 of a row at a time.

Each thread has neighbours of a row of tensor memory, whole blocks of them. The scales go to global
memory, as words of those of four blocks where a piece has so many.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.sm.types import attribute_of
from ...dialects.tile.pieces import WriteUnitOp
from ...dialects.tile.threads import ReadRowOp, ThreadColumnOp, ThreadLanesOp, ThreadRowOp
from ...dialects.tile_types import bits_of
from ..batches import map_definition
from ..build import as_i32, constant, less
from ..copy_width import UNIT_BYTES
from ..plan import cluster_of
from ..tmem_reads import TmemRead
from .duals import joined, starts_of
from .quantized import Quantized, Scales, quantize, units_of
from .values import RowPart


def write_quantized(piece: Any, atom_m: int) -> None:
    """The elements of a piece, and their scales."""
    store, bits = piece.store, bits_of(piece.store.element.value)
    columns = piece.columns * 8 // bits
    read = TmemRead.of(atom_m, columns, cluster_of(piece.kernel).pair)
    start = piece.start if bits == 8 else piece.start * (8 // bits)  # of fewer bits 4 are staged
    lanes, row = ThreadLanesOp().lanes, ThreadRowOp(sums=piece.sums).row
    own = None
    if read.layout != "D":  # there a thread has all columns
        own = ThreadColumnOp(sums=piece.sums, neighbours=attribute_of(read.registers)).column
    for first in range(0, piece.shape[0], read.atom_m):
        found = []
        for chunk in range(0, columns, read.columns):
            at = constant(chunk) if own is None else own + chunk
            where = {"sums": piece.sums, "lanes": lanes, "row": attribute_of(first)}
            values = _read(store, start + chunk, read.registers, where)
            part = _part(piece, values, row + first, start + at, read.registers)
            made = quantize(part, store.element.value)
            _write_units(piece, made, row + first, at * bits // 8)
            found.append(made)
        _write_scales(found, together=own is None)


def _read(store: Any, start: ir.Value, registers: int, where: dict[str, Any]) -> ir.Value:
    values = ir.VectorType.get([registers], where["sums"].type.element)
    starts = starts_of(store, start)
    return joined([ReadRowOp(start=at, values=values, **where).values for at in starts])


def _part(piece: Any, values: ir.Value, row: ir.Value, column: ir.Value, near: int) -> RowPart:
    """What a thread has of a row, at its place in C."""
    store, (m, n) = piece.store, piece.shape
    view = map_definition(store.to).view
    rows, columns = view.type.shape[-2:]
    row, column = as_i32(store.i) * m + row, as_i32(store.j) * n + column
    return RowPart(store, store.to, values, row, column, near, near, columns, less(row, rows))


def _write_units(piece: Any, made: Quantized, row: ir.Value, column: ir.Value) -> None:
    for number, unit in enumerate(units_of(made)):
        at = column + number * UNIT_BYTES
        WriteUnitOp(outputs=unit, buffer=piece.buffer, row=row, column=at)


def _write_scales(found: list[Quantized], together: bool) -> None:
    """Write the scales of adjacent chunks, all at once."""
    rows = map_definition(found[0].part.to).view.type.shape[-2]
    if together:
        codes = [code for made in found for code in made.scales]
        Scales(found[0].part, rows).write(codes)
        return
    for made in found:
        Scales(made.part, rows).write(made.scales)

"""`tile.store`: tensor memory → registers → epilogue → global memory, by all four warps."""

from __future__ import annotations

from functools import partial

from ...dialects.mlir import ir, llvm
from ...dialects.tile import ReducedStoreOp, StoreOp
from ...dialects.tile_types import element_bytes
from ..whole import is_whole
from . import build as b
from .accumulator import (
    Fragment,
    Place,
    read_fragment,
    store_fragment,
)
from .elements import element_pointer, read_elements, slice_of
from .frame import Frame
from .scalar_ops import apply_epilogue

VECTOR_BYTES = 32


def lower_store(frame: Frame, op: StoreOp) -> None:
    """Write every atom of the accumulator."""
    m, n = op.acc.type.shape
    atom_m = frame.target.mma_rows(m)
    held = frame.atom_columns(atom_m, n)
    fragment = store_fragment(op.acc.type, frame.cluster.pair)
    place = Place.of(frame, fragment, n)
    for row in range(0, m, atom_m):
        column = b.plus(frame.columns[op.acc], row // atom_m * held)
        _store_atom(frame, op, fragment, place, row, column)


def _store_atom(
    frame: Frame, op: StoreOp, fragment: Fragment, place: Place, row: int, column: ir.Value | int
) -> None:
    m, n = op.acc.type.shape
    output_row = b.add(b.mul(frame.index(op.i), m), b.add(place.row, row))
    inside = None if is_whole(op, "i") else b.less(output_row, op.view.type.shape[0])
    first_column = b.mul(frame.index(op.j), n)
    with b.loop(b.constant(0), fragment.parts(n), fragment.columns) as chunk:
        address = frame.tmem_address(b.add(b.add(place.lanes, chunk), column))
        values = read_fragment(fragment, op.acc.type.element, address)
        start = b.add(first_column, chunk)
        if place.column is not None:
            start = b.add(start, place.column)
        with b.when(inside):
            write_row(frame, op, values, output_row, start)


def vector_width(op: StoreOp | ReducedStoreOp, registers: int) -> int:
    """Elements of one store: up to 32 bytes, and a row is a whole number of them."""
    width = min(registers, VECTOR_BYTES // element_bytes(op.view.type.element_type))
    while op.view.type.shape[1] % width:
        width //= 2
    return width


def write_row(
    frame: Frame, op: StoreOp | ReducedStoreOp, values: ir.Value, row: ir.Value, column: ir.Value
) -> None:
    """Run the epilogue on `values` and store them, vector by vector, inside the view."""
    registers = ir.VectorType(values.type).shape[0]
    width = vector_width(op, registers)
    columns = op.view.type.shape[1]
    whole = is_whole(op, "j")
    for start in range(0, registers, width):
        at = b.add(column, start)
        with b.when(None if whole else b.less(at, columns)):
            read = partial(read_elements, frame, row, at, width, None)
            result = apply_epilogue(op, slice_of(values, start, width), width, read)
            offset = b.add(b.mul(b.widen(row), columns), b.widen(at))
            pointer = element_pointer(frame, op.view, offset)
            llvm.store(result, pointer, alignment=width * element_bytes(op.view.type.element_type))

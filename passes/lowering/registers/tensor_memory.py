"""Reading an accumulator from tensor memory into registers."""

from __future__ import annotations

from ....dialects import sm
from ....dialects.mlir import ir
from ... import build
from ...places import column_in, row_in
from ...tmem_reads import TmemRead

LANE = 1 << 16
"""What one lane further adds to an address."""


def lanes_of(warp: ir.Value) -> ir.Value:
    """The part of a tensor-memory address that names the lanes of a warp."""
    return warp * (32 << 16)


def row_of(warp: ir.Value, lane: ir.Value, fragment: TmemRead) -> ir.Value:
    """The row of a thread in an MMA's accumulator."""
    return fragment.first_row(warp) + row_in(fragment.fragment, lane=lane)


def column_of(warp: ir.Value, lane: ir.Value, fragment: TmemRead, n: int) -> ir.Value | None:
    """The first of its columns in every load; None where it has all of them."""
    if fragment.layout == "D":
        return None
    first = fragment.first_column(warp, n)
    return column_in(fragment.fragment, lane=lane) if first is None else first


def read_fragment(fragment: TmemRead, element: ir.Type, address: ir.Value) -> ir.Value:
    """`registers` sums of one row; the data is in registers when this returns."""
    type_ = ir.VectorType.get([fragment.registers], element)
    halves = fragment.registers if fragment.layout == "F" else 0
    return _load(fragment.shape, type_, address, halves)


def read_matrices(columns: int, element: ir.Type, address: ir.Value) -> ir.Value:
    """`columns` of 16 rows as 8x8 matrices: four sums a thread for every 8 columns."""
    type_ = ir.VectorType.get([columns // 2], element)
    return _load("16x256b", type_, address)


def _load(shape: str, type_: ir.VectorType, address: ir.Value, offset: int = 0) -> ir.Value:
    words = ir.VectorType.get(type_.shape, build.i32())
    loaded = sm.TmemLoadOp.of(address, shape=shape, offset=offset, words=words).words
    return sm.TmemWaitOp.of(loaded, values=type_).values

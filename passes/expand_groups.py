"""What is made of neighbours in a row: each thread's part of the groups, and the write of them.

    tile.store_groups %acc, %d     %sums = tile.await_sums %acc
                             →     for start = 0 .. columns step registers
                                     %values = tile.read_row %sums, start
                                     for up to four neighbours:
                                       %x = tile.apply_to_row %values, %d, %row, %j * N + start
                                     their magnitudes or sums, over lanes that share a row, too
                                     tile.write_group

    tile.store_quantized %acc, %c, %scales    the same reads, and of each
                                     %codes, %s = tile.quantize_values %values, %c, %row, …
                                     tile.write_codes %codes, %c, %row, …
                                     tile.write_scales %s, %scales, %row, …

All lanes of a warp stay together, since those that share a row exchange what they have.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..dialects.mlir import arith, ir
from ..dialects.sm_threads import ConvergeOp
from ..dialects.sm_types import attribute_of
from ..dialects.target import Target
from ..dialects.tile import AwaitMmaOp, KernelOp
from ..dialects.tile_outputs import StoreGroupsOp, WriteGroupOp
from ..dialects.tile_quantized import (
    QuantizeValuesOp,
    StoreQuantizedOp,
    WriteCodesOp,
    WriteScalesOp,
)
from ..dialects.tile_threads import ThreadRowOp
from ..dialects.tile_types import bits_of, integers
from ..dialects.verify import products_of, tile_of_c
from .base import refused
from .build import as_i32, both, less, loop, when
from .clone import copy_region
from .dynamic_rows import rows_of
from .expand_rows import Columns, hand_back, held_atoms, held_rows, thread_pair
from .expand_values import RowPart, magnitude
from .places import PAIR, PAIR_EVERY

Store = StoreGroupsOp | StoreQuantizedOp


def expand_groups(kernel: KernelOp, store: Store, target: Target) -> None:
    """Write out one store."""
    with ir.InsertionPoint(store), store.location:
        if target.has_tensor_memory:
            _reduce_rows(kernel, store)
            hand_back(store)
        else:
            _reduce_pairs(kernel, store, target)
    store.operation.erase()


def _reduce_rows(kernel: KernelOp, store: Any) -> None:
    """Each thread has neighbours of its own row of tensor memory."""
    columns, (m, n) = Columns.of(kernel, store), tile_of_c(store)
    _check_whole(store, columns.fragment.registers)
    for first in columns.atoms():
        row = as_i32(store.i) * m + (columns.row + first)
        start_of_tile = as_i32(store.j) * n
        with loop(*columns.chunks()) as chunk:
            values = columns.read(first, chunk)
            count = columns.fragment.registers
            _write(store, values, row, columns.own(start_of_tile + chunk), count, count)


def _reduce_pairs(kernel: KernelOp, store: Any, target: Target) -> None:
    """Four lanes share a row: each has pairs in every 8 columns."""
    m, n = tile_of_c(store)
    if target.awaits_mmas:
        AwaitMmaOp(pending=attribute_of(0))
    row = as_i32(store.i) * m + ThreadRowOp(sums=store.acc).row
    column = as_i32(store.j) * n + thread_pair(store.acc)
    atoms, width = held_atoms(kernel, store.acc, target)
    _check_whole(store, width // products_of(store))
    for first in atoms:
        for behind, values in held_rows(store.acc, first, width):
            _write(store, values, row + (first + behind), column, PAIR, PAIR_EVERY)
    ConvergeOp()  # one lane of four has written; the next tile's instructions are of whole warps


def _check_whole(store: Store, columns: int) -> None:
    """Refuse groups that lie across what two threads, or warps, have."""
    group = (store.block if isinstance(store, StoreQuantizedOp) else store.group).value
    if columns % group:
        rule = f"expand-loops: threads must have whole groups of {group} columns"
        raise refused(store, f"{rule}, got {columns}; take a tile with a wider N")


def _write(
    store: Store, values: ir.Value, row: ir.Value, column: ir.Value, near: int, every: int
) -> None:
    if isinstance(store, StoreQuantizedOp):
        _quantize(store, values, row, column, near, every)
        return
    inside, columns = less(row, rows_of(store.view)), store.columns.value
    part = RowPart(store, store.view, values, row, column, near, every, columns, inside)
    _write_groups(store, part)


def _write_groups(store: StoreGroupsOp, part: RowPart) -> None:
    """In a thread from the first column to the last, then over lanes."""
    group, found = store.group.value, dict[int, ir.Value]()
    for start, value in part.elements():
        number, value = start // group, _reduced(store, part, value, start)
        found[number] = value if number not in found else _combined(store, found[number], value)
    for number, value in found.items():
        value = part.over_lanes(value, partial(_combined, store))
        first = part.column + number * group
        stores = both(part.inside, less(first, part.columns))
        with when(both(stores, part.first_lane())):
            how = {"group": store.group, "reduce": store.reduce, "columns": store.columns}
            WriteGroupOp(value=value, view=store.view, row=part.row, column=first, **how)


def _reduced(store: StoreGroupsOp, part: RowPart, value: ir.Value, start: int) -> ir.Value:
    """What an element adds to its group: beyond the last column of C, nothing."""
    value = magnitude(value) if store.reduce.value == "amax" else value
    if part.columns % store.group.value == 0:  # a group lies wholly inside or outside
        return value
    there = less(part.column + start // part.width * part.width, part.columns)
    return arith.select(there, value, arith.ConstantOp(ir.F32Type.get(), 0.0).result)


def _combined(store: StoreGroupsOp, a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.maximumf(a, b) if store.reduce.value == "amax" else arith.addf(a, b)


def _quantize(
    store: StoreQuantizedOp,
    values: ir.Value,
    row: ir.Value,
    column: ir.Value,
    near: int,
    every: int,
) -> None:
    """Codes of the values and of their scales, and both to where they belong."""
    count, byte = ir.VectorType(values.type).shape[0] // products_of(store), _byte()
    bits, blocks = bits_of(store.view.type.element_type), count // near * every // store.block.value
    where = {"row": row, "column": column, "block": store.block}
    where |= {"neighbours": attribute_of(near), "every": attribute_of(every)}
    made = QuantizeValuesOp(
        values=values,
        view=store.view,
        rounding=store.rounding,
        scale=ir.TypeAttr.get(store.scales.type.element_type),
        codes=ir.VectorType.get([count * bits // 8], byte),
        scales=ir.VectorType.get([blocks], byte),
        **where,
    )
    copy_region(store.epilogue, made.epilogue)
    WriteCodesOp(codes=made.codes, view=store.view, **where)
    extents, rows = integers(list(store.view.type.shape)), attribute_of(tile_of_c(store)[0])
    WriteScalesOp(codes=made.scales, scales=store.scales, extents=extents, rows=rows, **where)


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)

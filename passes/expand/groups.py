"""Reductions over neighbours in a row: each thread's part, and its store.

    tile.store_groups %acc, %d     %sums = tile.await_sums %acc
                             →     for start = 0 .. columns step registers
                                     %values = tile.read_row %sums, start
                                     for up to four neighbours:
                                       %x = tile.apply_to_row %values, %d, %row, %j * N + start
                                     their magnitudes or sums, over lanes that share a row, too
                                     tile.write_group

    tile.store_quantized           the same reads (`expand/quantized.py`)

All lanes of a warp stay together, since those that share a row exchange what they have.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...dialects.dtypes import SCALE_ATOM_BLOCKS
from ...dialects.mlir import arith, ir
from ...dialects.sm.threads import ConvergeOp
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import AwaitMmaOp, KernelOp
from ...dialects.tile.outputs import StoreGroupsOp, WriteGroupOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile.threads import ThreadRowOp
from ...dialects.verify import products_of, tile_of_c
from ..base import refused
from ..build import as_i32, both, less, loop, when
from ..dynamic_rows import rows_of
from ..places import PAIR, PAIR_EVERY
from .quantized import Scales, quantize, write_codes
from .rows import Columns, hand_back, held_atoms, held_rows, thread_pair
from .values import RowPart, magnitude

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
        begin, end, step = columns.chunks()
        together = _chunks_together(store, columns)
        with loop(begin, end, together * step) as start:
            count, parts = columns.fragment.registers, []
            for chunk in (start + number * step for number in range(together)):
                values = columns.read(first, chunk)
                where = (values, row, columns.own(start_of_tile + chunk), count, count)
                parts.append(where)
            _write(store, parts)


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
            _write(store, [(values, row + (first + behind), column, PAIR, PAIR_EVERY)])
    ConvergeOp()  # one lane of four has written; the next tile's instructions are of whole warps


def _check_whole(store: Store, columns: int) -> None:
    """Refuse groups that lie across what two threads, or warps, have."""
    group = (store.block if isinstance(store, StoreQuantizedOp) else store.group).value
    if columns % group:
        rule = f"expand-loops: threads must have whole groups of {group} columns"
        raise refused(store, f"{rule}, got {columns}; take a tile with a wider N")


def _chunks_together(store: Store, columns: Columns) -> int:
    """Chunks that a thread reads one after the other, so that it has a word of scales."""
    if not isinstance(store, StoreQuantizedOp) or columns.fragment.layout == "F":
        return 1
    _, end, step = columns.chunks()
    wanted = SCALE_ATOM_BLOCKS * store.block.value // columns.fragment.registers
    return math.gcd(max(1, wanted), end // step)


def _write(store: Store, parts: list[tuple[ir.Value, ir.Value, ir.Value, int, int]]) -> None:
    """What a thread has of a row: values, row, column, neighbours, and how far groups are apart."""
    columns = store.columns.value if isinstance(store, StoreGroupsOp) else store.view.type.shape[1]
    inside = less(parts[0][1], rows_of(store.view))
    found = [RowPart(store, store.view, *part, columns, inside) for part in parts]
    if isinstance(store, StoreGroupsOp):
        for part in found:
            _write_groups(store, part)
        return
    quantized = [quantize(part, store.view.type.element_type) for part in found]
    for made in quantized:
        write_codes(made, store.view)
    rows = store.view.type.shape[0]
    Scales(found[0], rows).write([code for made in quantized for code in made.scales])


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

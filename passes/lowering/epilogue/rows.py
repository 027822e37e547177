"""Reads of an accumulator's rows by a thread, and writes to global or shared memory.

Where threads hold the sums, each has, of every MMA, two neighbouring columns in every 8 of two
rows, 8 apart (`register_accumulator`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ....dialects import llvm
from ....dialects.legality import PARTIAL_BYTES
from ....dialects.mlir import ir
from ....dialects.tile.outputs import WriteGroupOp
from ....dialects.tile.threads import (
    ApplyToRowOp,
    PartialOp,
    ReadMatricesOp,
    ReadRowOp,
    ReadRowsOp,
    ThreadColumnOp,
    ThreadLanesOp,
    ThreadRowOp,
    WritePartialOp,
    WriteRowOp,
    is_global,
    partials_layout,
)
from ....dialects.tile_types import AccumulatorType, element_bytes, extent_of, integers_of
from ....dialects.verify import products_of
from ... import build
from ...base import defining_op
from ...batches import column_pitch, row_pitch
from ...copy_width import UNIT_BYTES
from ...places import ATOM_M, COLUMNS, PAIR, behind, column_in, held_row, row_in
from ...team import Team
from ...tmem_reads import TmemRead
from ...whole import is_whole
from ..operands.units import unit_offset
from ..registers.elements import joined, read_elements, slice_of
from ..registers.register_accumulator import parts, pinned, struct_of_type
from ..registers.tensor_memory import column_of, lanes_of, read_fragment, read_matrices, row_of
from ..scales.group_scales import scaled_rows
from ..scope.scope import CAST, Scope, element_pointer, lowered, lowered_as, lowered_parts, sums_at
from ..tiles.groups import columns_in, row_of_whole
from .scalar_ops import apply_epilogue

UNIT_COLUMNS = UNIT_BYTES // 4


def lower_thread_lanes(_: Scope, op: ThreadLanesOp) -> ir.Value:
    """By its warp."""
    return lanes_of(Team.of(op).thread // 32)


def lower_thread_row(scope: Scope, op: ThreadRowOp) -> ir.Value:
    """By warp and lane, as tcgen05.ld spreads rows."""
    team, fragment = Team.of(op), _fragment(scope, op.sums, 1)
    return row_of(team.thread // 32, team.lane, fragment)


def lower_thread_column(scope: Scope, op: ThreadColumnOp) -> ir.Value:
    """By warp or lane, as tcgen05.ld spreads columns."""
    team, fragment = Team.of(op), _fragment(scope, op.sums, op.neighbours.value)
    n = op.sums.type.shape[1]
    column = column_of(team.thread // 32, team.lane, fragment, n)
    return build.constant(0) if column is None else column


def lower_read_row(scope: Scope, op: ReadRowOp) -> ir.Value:
    """One tcgen05.ld."""
    fragment = _fragment(scope, op.sums, ir.VectorType(op.values.type).shape[0])
    address = _address(scope, op, fragment.atom_m)
    return read_fragment(fragment, op.sums.type.element, address)


def lower_read_matrices(scope: Scope, op: ReadMatricesOp) -> list[ir.Value]:
    """One tcgen05.ld, which gives pairs of the two rows in turn."""
    half = ir.VectorType(op.upper.type)
    address = _address(scope, op, scope.mma_rows(op.sums.type.shape[0]))
    values = read_matrices(4 * half.shape[0], op.sums.type.element, address)
    found = []
    for row in range(2):
        pairs = range(PAIR * row, 2 * half.shape[0], 2 * PAIR)
        mask = [start + column for start in pairs for column in range(PAIR)]
        found.append(llvm.shufflevector(half, values, values, mask))
    return found


def _address(scope: Scope, op: ReadRowOp | ReadMatricesOp, atom_m: int) -> ir.Value:
    """Where tensor memory has what is read, of the MMA that begins with a row."""
    held = scope.atom_columns(atom_m, op.sums.type.shape[1])
    base, first = sums_at(op.sums)
    column = first + op.row.value // atom_m * held
    return base + (op.lanes + op.start + column)


def _fragment(scope: Scope, sums: ir.Value[AccumulatorType], registers: int) -> TmemRead:
    atom_m = scope.mma_rows(sums.type.shape[0])
    return TmemRead(TmemRead.layout_of(atom_m, scope.cluster.pair), registers)


def lower_held_row(scope: Scope, op: ThreadRowOp) -> ir.Value:
    """By warp and lane, as wgmma spreads rows."""
    team, (m, _) = Team.of(op), op.sums.type.shape
    first = held_row(
        team.thread,
        m,
        m // scope.warpgroups(op.sums.type),
        scope.target.adds_from_tensor_memory,
    )
    return first + row_in(COLUMNS, lane=team.lane)


def lower_held_column(_: Scope, op: ThreadColumnOp) -> ir.Value:
    """By lane: four share 8 columns."""
    return column_in(COLUMNS, lane=Team.of(op).lane)


def lower_read_rows(scope: Scope, op: ReadRowsOp) -> list[ir.Value]:
    """The registers of one MMA, once they may be read: of each row, pairs in turn."""
    atom = op.row.value // ATOM_M
    slot = lowered_parts(op.sums)[atom]
    values = parts(pinned(llvm.load(struct_of_type(op.sums.type), slot)))
    values = scaled_rows(scope, op.sums, atom, values)
    rows: dict[int, list[ir.Value]] = {row: [] for row, _ in map(behind, range(COLUMNS.values))}
    for register, value in enumerate(values):
        rows[behind(register)[0]].append(value)
    return [lowered_as(own, op.upper.type) for own in rows.values()]


def lower_write_row(scope: Scope, op: WriteRowOp) -> None:
    """The epilogue of a vector and its store, inside the view."""
    width, columns = op.width.value, columns_in(scope, op.view, extent_of(op.view.type, 1))
    values, column = parts_of(op, products_of(op)), op.column + op.behind.value
    with build.when(None if is_whole(op, "j") else build.less(column, columns)):
        read = partial(read_elements, op.row, column, width, None)
        result = apply_epilogue(op, values, width, read)
        offset = build.widen(row_of_whole(op.view, op.row)) * row_pitch(op.view)
        along, apart = build.widen(column), column_pitch(op.view)
        along = along if apart == 1 else along * apart
        pointer = element_pointer(op.view, offset + along)
        llvm.store(result, pointer, alignment=width * element_bytes(op.view.type.element_type))


def lower_apply_to_row(_: Scope, op: ApplyToRowOp) -> ir.Value:
    """The ops of the region on a vector of neighbours."""
    width = op.width.value
    read = partial(read_elements, op.row, op.column, width, op.inside)
    made = apply_epilogue(op, parts_of(op, products_of(op)), width, read)
    return made if width > 1 else joined([made])


def lower_write_group(_: Scope, op: WriteGroupOp) -> None:
    """One store."""
    width = op.view.type.shape[1]
    offset = build.widen(op.row) * width + build.widen(op.column // op.group.value)
    llvm.store(op.value, element_pointer(op.view, offset), alignment=4)


def lower_write_partial(_: Scope, op: WritePartialOp) -> None:
    """One store."""
    (values,) = parts_of(op, 1)
    alignment = op.width.value * PARTIAL_BYTES
    to = _partial(op.memory, op.row, op.column + op.behind.value)
    llvm.store(values, to, alignment=alignment)


def lower_partial(_: Scope, op: PartialOp) -> ir.Value:
    return _partial(op.memory, op.row, op.column)


def _partial(memory: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
    """The sum at a place of the tile in this CTA's memory, or of rows in global memory."""
    if is_global(memory):
        rows = ir.MemRefType(memory.type)
        offset = build.widen(row) * rows.shape[1] + build.widen(column)
        return build.element_pointer(lowered(memory), rows.element_type, offset)
    layout, (start,) = partials_layout(memory), integers_of(defining_op(memory).offsets)
    unit = unit_offset(layout, row, column // UNIT_COLUMNS)
    within = column % UNIT_COLUMNS * layout.element_bytes
    return build.shared_at(unit + within + start)


def parts_of(op: WriteRowOp | ApplyToRowOp | WritePartialOp, products: int) -> list[ir.Value]:
    """What an op takes of the values of each product."""
    (count,), part = ir.VectorType(op.values.type).shape, _parts_of_values(op)
    starts = range(op.first.value, count, count // products)
    return [part(start, op.width.value) for start in starts]


def _parts_of_values(op: Any) -> Callable[[int, int], ir.Value]:
    """What gives some neighbouring values of those that an op writes."""
    if ir.OpResult(op.values).owner.name == CAST:
        held = lowered_parts(op.values)
        return lambda start, width: (
            held[start] if width == 1 else joined(held[start : start + width])
        )
    (count,) = ir.VectorType(op.values.type).shape
    return lambda start, width: (
        op.values if 1 < width == count else slice_of(op.values, start, width)
    )


ROWS = {
    ThreadLanesOp: lower_thread_lanes,
    ThreadRowOp: lower_thread_row,
    ThreadColumnOp: lower_thread_column,
    ReadRowOp: lower_read_row,
    ReadMatricesOp: lower_read_matrices,
    WriteRowOp: lower_write_row,
    ApplyToRowOp: lower_apply_to_row,
    WriteGroupOp: lower_write_group,
    WritePartialOp: lower_write_partial,
    PartialOp: lower_partial,
}
HELD_ROWS = {
    ThreadRowOp: lower_held_row,
    ThreadColumnOp: lower_held_column,
    ReadRowsOp: lower_read_rows,
}
"""Where a thread holds its sums in registers."""

"""Expands reads ahead of a store: one for each element that the epilogue of a thread reads.

    tile.read_ahead %e0[%i, %j] "n"      %values = tile.read_operand %e0, row, column   of each pair
    …                                 →  …
    tile.apply_epilogue {                tile.apply_epilogue {
      tile.element %e0 "n" }               tile.held_element %e0, %values "n" }

Sums that threads hold are written piece by piece, so that the columns of each are known here.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile import ElementOp, KernelOp, StagedStoreOp
from ...dialects.tile.ahead import HeldElementOp, ReadAheadOp, ReadOperandOp, StagedElementOp
from ...dialects.tile.pieces import ApplyEpilogueOp
from ...dialects.tile_types import integers_of
from ...dialects.verify import tile_of_c
from ..base import walk
from ..build import as_i32, constant, less, true
from ..clone import Mapping, clone, is_pure
from ..dynamic_rows import rows_of
from ..whole import extents_of_store, lies_inside

Form = tuple[Any, ...]


def reads_for(kernel: KernelOp, store: Any) -> list[ReadAheadOp]:
    """The reads ahead of the tile that is stored."""
    place = (store.i, store.j)
    return [op for op in walk(kernel, ReadAheadOp) if (op.i, op.j) == place]


def expand_reads(kernel: KernelOp, stores: list[StagedStoreOp]) -> None:
    """Write out what the epilogues of the pieces of stores that go together read ahead."""
    store, tos = stores[0], [each.to for each in stores]
    for ahead in reads_for(kernel, store):
        known: dict[Form, ir.Value] = {}
        copies: Mapping = {}
        for op in walk(kernel, ApplyEpilogueOp):
            if (op.i, op.j) != (store.i, store.j) or op.to not in tos:
                continue
            for element in plain_reads(op, ahead):
                form = _form_of(op, ahead.axes.value)
                if form not in known:
                    with ir.InsertionPoint(ahead), ahead.location:
                        known[form] = _read(kernel, store, ahead, op, copies)
                hold(element, known[form])


def end_reads(kernel: KernelOp) -> None:
    """Drop what has been written out."""
    for op in walk(kernel, ReadAheadOp):
        op.operation.erase()


def _form_of(op: ApplyEpilogueOp, axes: str) -> Form:
    """What tells the place that is read from others of the tile."""
    rows, columns = integers_of(op.behind)
    if axes == "m":
        return _form(op.row), rows
    return (_form(op.start), _form(op.column), columns) if axes else ()


def _form(value: ir.Value) -> Form:
    """How a value is computed: equal for values that are computed alike."""
    if isinstance(value.owner, ir.Block) or not is_pure(value.owner.opview):
        return (value,)
    op = value.owner
    key = str(op.attributes["value"]) if op.name == "arith.constant" else op.name
    return (key, *map(_form, op.operands))


def _read(
    kernel: KernelOp,
    store: StagedStoreOp,
    ahead: ReadAheadOp,
    op: ApplyEpilogueOp,
    copies: Mapping,
) -> ir.Value:
    """The read of what a thread's neighbours, or one of its rows, need."""
    (m, n), (rows, columns) = tile_of_c(store), integers_of(op.behind)
    row = column = constant(0)
    inside, values = true(), ahead.source.type.element_type
    if ahead.axes.value == "m":
        row = as_i32(ahead.i) * m + (_copy(op.row, copies) + rows)
        inside = _inside(kernel, store, "i", row, rows_of(ahead.source))
    if ahead.axes.value == "n":
        within = _copy(op.start, copies) + (_copy(op.column, copies) + columns)
        column = as_i32(ahead.j) * n + within
        inside = _inside(kernel, store, "j", column, extents_of_store(store, store.to.type)[1])
        values = ir.VectorType.get(ir.VectorType(op.outputs.type).shape, values)
    return ReadOperandOp(
        source=ahead.source,
        row=row,
        column=column,
        inside=inside,
        axes=ahead.axes,
        values=values,
    ).values


def _inside(
    kernel: KernelOp, store: StagedStoreOp, name: str, place: ir.Value, extent: int | ir.Value
) -> ir.Value:
    """Whether a place along the index of that name is one of C."""
    return true() if lies_inside(kernel, store, name) else less(place, extent)


def _copy(value: ir.Value, copies: Mapping) -> ir.Value:
    """A value that is computed of what threads know of themselves, computed here."""
    if isinstance(value.owner, ir.Block) or not is_pure(value.owner.opview):
        return value
    if value not in copies:
        for operand in value.owner.operands:
            copies[operand] = _copy(operand, copies)
        clone(value.owner.opview, copies)
    return copies[value]


def hold(element: ElementOp | StagedElementOp, values: ir.Value) -> None:
    """Let an epilogue take an element from values that a thread has."""
    with ir.InsertionPoint(element), element.location:
        held = HeldElementOp(
            source=element.source, axes=element.axes, values=values, value=element.value.type
        )
    element.value.replace_all_uses_with(held.value)
    element.operation.erase()


def plain_reads(store: Any, op: ReadAheadOp) -> list[ElementOp]:
    """What an epilogue reads of the same operand by the same axes, by itself."""
    what = (op.source, op.axes.value)
    found = [each for each in walk(store, ElementOp) if type(each) is ElementOp]
    return [each for each in found if (each.source, each.axes.value) == what]

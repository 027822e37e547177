"""`tile.staged_store`: tensor memory → registers → epilogue → swizzled shared memory → TMA.

For each piece of the tile: the leader waits until the buffer's last store has been read, all meet,
threads write their rows, the async proxy is told, and the leader stores the piece by TMA.
"""

from __future__ import annotations

from functools import partial

from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm, nvvm
from ...dialects.tile import StagedStoreOp, element_bytes
from . import build as b
from .accumulator import (
    Fragment,
    Place,
    await_accumulator,
    hand_back_accumulator,
    read_fragment,
)
from .elements import read_elements, slice_of
from .frame import Frame, Slot
from .operands import UNIT_BYTES, unit_offset
from .scalar_ops import apply_epilogue


def lower_staged_store(frame: Frame, op: StagedStoreOp) -> None:
    """Wait for the MMAs, then send the accumulator out piece by piece."""
    await_accumulator(frame, op)
    layout = op.staging.type.tiles[0].layout
    m, n = op.acc.type.shape
    atom_m = frame.target.mma_rows(m)
    fragment = Fragment.of(atom_m, layout.k, frame.cluster.pair)
    place = Place.of(frame, fragment, n)
    turn = frame.rings[op.staging].producer
    with b.loop(b.constant(0), n, layout.k) as piece:
        buffer = frame.tile_in(Slot(op.staging, turn.index()), 0)
        with frame.team.once():
            nvvm.cp_async_bulk_wait_group(op.staging.type.stages - 1, read=True)
        frame.team.meet()
        for row in range(0, m, atom_m):
            column = b.plus(frame.columns[op.acc], row // atom_m * n)
            _write_rows(frame, op, fragment, place, row, b.add(piece, column), piece, buffer)
        frame.publish_shared()
        with frame.team.once():
            _store(frame, op, piece, buffer)
        turn.advance()
    hand_back_accumulator(frame, op)


def finish_stores(frame: Frame) -> None:
    """Before a CTA exits, TMA must have read what its leader told it to store."""
    with frame.team.once():
        nvvm.cp_async_bulk_wait_group(0, read=True)


def _write_rows(
    frame: Frame,
    op: StagedStoreOp,
    fragment: Fragment,
    place: Place,
    row: int,
    column: ir.Value,
    piece: ir.Value,
    buffer: ir.Value,
) -> None:
    """Every thread writes its row of one MMA's part of the piece, in 16-byte units."""
    layout = op.staging.type.tiles[0].layout
    width = UNIT_BYTES // layout.element_bytes
    in_tile = b.add(place.row, row)
    for chunk in range(0, layout.k, fragment.columns):
        address = frame.tmem_pointer(b.add(b.add(place.lanes, column), chunk))
        values = read_fragment(fragment, address)
        first = b.constant(chunk) if place.column is None else b.add(place.column, chunk)
        for start in range(0, fragment.registers, width):
            in_piece = b.add(first, start)
            part = slice_of(values, start, width)
            result = _apply(frame, op, part, in_tile, b.add(piece, in_piece), width)
            _put(frame, layout, result, in_tile, in_piece, buffer)


def _apply(
    frame: Frame, op: StagedStoreOp, part: ir.Value, row: ir.Value, column: ir.Value, width: int
) -> ir.Value:
    m, n = op.acc.type.shape
    height, columns = op.map.type.dims[1], op.map.type.dims[0]
    at_row = b.add(b.mul(frame.index(op.i), m), row)
    at_column = b.add(b.mul(frame.index(op.j), n), column)
    inside = None if height % m == 0 else b.less(at_row, height)
    if columns % n:
        inside = b.both(inside, b.less(at_column, columns))
    read = partial(read_elements, frame, at_row, at_column, width, inside)
    return apply_epilogue(op, part, width, read)


def _put(
    frame: Frame,
    layout: TileLayout,
    value: ir.Value,
    row: ir.Value,
    column: ir.Value,
    buffer: ir.Value,
) -> None:
    unit = b.div(column, UNIT_BYTES // layout.element_bytes)
    address = frame.shared_at(b.add(unit_offset(layout, row, unit), buffer))
    llvm.store(value, address, alignment=UNIT_BYTES)


def _store(frame: Frame, op: StagedStoreOp, piece: ir.Value, buffer: ir.Value) -> None:
    m, n = op.acc.type.shape
    define = op.map.owner.opview
    map_ = frame.parameters[define.view, op.map]
    coordinates = [b.add(b.mul(frame.index(op.j), n), piece), b.mul(frame.index(op.i), m)]
    nvvm.cp_async_bulk_tensor_global_shared_cta(map_, frame.shared_at(buffer), coordinates)
    nvvm.cp_async_bulk_commit_group()


def alignment_bytes(op: StagedStoreOp, view: ir.Value) -> int:
    """Bytes that the address of `view`, read by the epilogue, must be a multiple of."""
    width = UNIT_BYTES // element_bytes(op.map.type.element)
    return width * element_bytes(view.type.element_type)

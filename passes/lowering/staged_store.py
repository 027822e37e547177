"""`tile.staged_store`: tensor memory → registers → epilogue → swizzled shared memory → TMA.

For each piece of the tile: the leader waits until the buffer's last store has been read, all meet,
threads write their rows, the async proxy is told, and the leader stores the piece by TMA.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm, nvvm
from ...dialects.tile import StagedStoreOp
from ...dialects.tile_types import element_bytes
from . import build as b
from .accumulator import (
    MATRIX_LANES,
    Fragment,
    Place,
    await_accumulator,
    hand_back_accumulator,
    read_fragment,
    read_matrices,
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
            part = Piece(frame, op, fragment, place, row, b.add(piece, column), piece, buffer)
            WRITES[op.write.value](part)
        frame.publish_shared()
        with frame.team.once():
            _store(frame, op, piece, buffer)
        turn.advance()
    hand_back_accumulator(frame, op)


def finish_stores(frame: Frame) -> None:
    """Before a CTA exits, TMA must have read what its leader told it to store."""
    with frame.team.once():
        nvvm.cp_async_bulk_wait_group(0, read=True)


@dataclass(frozen=True)
class Piece:
    """One MMA's part of a piece: `fragment.atom_m` rows from `row` on, at tensor-memory `column`.

    `start` is the piece's first column in the tile, `buffer` its place in shared memory (bytes).
    """

    frame: Frame
    op: StagedStoreOp
    fragment: Fragment
    place: Place
    row: int
    column: ir.Value
    start: ir.Value
    buffer: ir.Value

    @property
    def layout(self) -> TileLayout:
        return self.op.staging.type.tiles[0].layout

    def apply(self, values: ir.Value, row: ir.Value, column: ir.Value, width: int) -> ir.Value:
        """The epilogue of `width` elements from (row of the tile, column of the piece) on."""
        op, frame = self.op, self.frame
        m, n = op.acc.type.shape
        height, columns = op.map.type.dims[1], op.map.type.dims[0]
        at_row = b.add(b.mul(frame.index(op.i), m), row)
        at_column = b.add(b.mul(frame.index(op.j), n), b.add(self.start, column))
        inside = None if frame.is_whole(height, m, "m") else b.less(at_row, height)
        if not frame.is_whole(columns, n, "n"):
            inside = b.both(inside, b.less(at_column, columns))
        read = partial(read_elements, frame, at_row, at_column, width, inside)
        return apply_epilogue(op, values, width, read)

    def pointer(self, row: ir.Value, unit: ir.Value) -> ir.Value:
        """Where a 16-byte unit of a row of the tile goes."""
        offset = b.add(unit_offset(self.layout, row, unit), self.buffer)
        return self.frame.shared_at(offset)


def _write_rows(piece: Piece) -> None:
    """Every thread has a row and writes it in 16-byte units."""
    fragment, place, layout = piece.fragment, piece.place, piece.layout
    width = UNIT_BYTES // layout.element_bytes
    row = b.add(place.row, piece.row)
    for chunk in range(0, layout.k, fragment.columns):
        address = piece.frame.tmem_pointer(b.add(b.add(place.lanes, piece.column), chunk))
        values = read_fragment(fragment, address)
        first = b.constant(chunk) if place.column is None else b.add(place.column, chunk)
        for start in range(0, fragment.registers, width):
            column = b.add(first, start)
            result = piece.apply(slice_of(values, start, width), row, column, width)
            pointer = piece.pointer(row, b.div(column, width))
            llvm.store(result, pointer, alignment=UNIT_BYTES)


def _write_matrices(piece: Piece) -> None:
    """Every warp has 8x8 matrices and writes four at a time with stmatrix.

    tcgen05.ld.16x256b gives thread t of a warp, for every 8 columns q, columns 8q + 2(t%4) and the
    next of rows t/4 and t/4 + 8: what stmatrix takes (PTX ISA, tcgen05 matrix fragments; stmatrix).
    """
    warp, lane = b.div(piece.frame.team.thread, 32), piece.frame.lane
    warp_rows = piece.fragment.atom_m // 4
    for half in range(0, warp_rows, MATRIX_LANES):
        lanes = b.add(piece.place.lanes, half << 16)
        address = piece.frame.tmem_pointer(b.add(lanes, piece.column))
        values = read_matrices(piece.layout.k, address)
        first = b.add(b.mul(warp, warp_rows), piece.row + half)
        words = _packed(piece, values, b.add(first, b.div(lane, 4)), b.mul(b.rem(lane, 4), 2))
        _store_matrices(piece, words, first, lane)


def _packed(piece: Piece, values: ir.Value, row: ir.Value, column: ir.Value) -> list[ir.Value]:
    """The thread's pairs of results as 32-bit words, in the order of its registers."""
    words = []
    for index in range(0, ir.VectorType(values.type).shape[0], 2):
        block, low = divmod(index, 4)
        at_row, at_column = b.add(row, 4 * low), b.add(column, 8 * block)
        result = piece.apply(slice_of(values, index, 2), at_row, at_column, 2)
        words.append(llvm.bitcast(b.i32(), result))
    return words


def _store_matrices(piece: Piece, words: list[ir.Value], first: ir.Value, lane: ir.Value) -> None:
    """Lanes 8j to 8j + 7 name the rows of matrix j: rows 0-7 and 8-15 of two units."""
    matrix, row = b.div(lane, 8), b.rem(lane, 8)
    row = b.add(b.add(first, row), b.mul(b.rem(matrix, 2), 8))
    for index in range(0, len(words), 4):
        unit = b.add(b.div(matrix, 2), index // 2)
        nvvm.stmatrix(piece.pointer(row, unit), words[index : index + 4], *_matrix_attributes())


def _matrix_attributes() -> tuple[ir.Attribute, ...]:
    texts = (
        "#nvvm.mma_layout<row>",
        "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
        "#nvvm.ld_st_matrix_elt_type<b16>",
    )
    return tuple(ir.Attribute.parse(text) for text in texts)


WRITES = {"rows": _write_rows, "matrices": _write_matrices}


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

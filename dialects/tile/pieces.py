"""Writing a piece of a tile to its staging buffer in shared memory.

tile.read_fragment    sums of 16 rows that the threads of a warp have as 8x8 matrices
tile.apply_epilogue   outputs[c] = f(values[first + c]), of neighbours in a row
tile.write_unit       buffer[row, column + c] = outputs[c]: 16 bytes of a row
tile.write_matrices   pairs of 16 rows and columns to the buffer, by one stmatrix
tile.write_pairs      the same by a store for each pair
tile.load_matrices    pairs of 16 rows and columns of another operand's piece, by one ldmatrix

A piece is the columns from `start` on of a tile, as many as the buffer has.
"""

from collections.abc import Sequence
from typing import Any

from ..fragments import ROWS
from ..integer_types import I32
from ..layout import UNIT_BYTES
from ..mlir import ext, ir
from ..tile_types import AccumulatorType, SmemType, Tile, integers_of, stored_element
from ..verify import (
    can_write_matrices,
    lies_in_rows,
    products_of,
    refuse,
    verify_epilogue,
    verify_stored_to,
)
from .stores import WHOLES
from .threads import WARP_ROWS, verify_values

PAIR = 2
"""Neighbours that a thread has of an 8x8 matrix."""
STORED = 8
"""Elements of a thread that one stmatrix stores: a pair of each of four matrices."""
LINES = "rows of the buffer must lie in line"


class ReadFragmentOp(Tile.Operation, name="read_fragment"):
    """`values`: the accumulator elements of 16 of the warp's rows, as 8x8 matrices, two above each
    other.

    In every 8 columns a thread has a pair of adjacent columns in one row, and a pair 8 rows below.
    The rows begin `row` rows after the warp's own of the first MMA, and the columns `start` columns
    after the warp's own. All threads of the team read together.
    """

    sums: ext.Operand[AccumulatorType]
    start: ext.Operand[I32]
    row: ir.IntegerAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        sums, values, row = self.sums.type, self.values.type, self.row.value
        if not verify_values(self, sums, values, row, WARP_ROWS):
            return False
        count, most = ir.VectorType(values).shape[0], sums.shape[1] // 2
        fits = count % 4 == 0 and most % count == 0
        return fits or refuse(self, f"must give a part of {most} values, got {values}")


class ApplyEpilogueOp(Tile.Operation, name="apply_epilogue"):
    """`outputs[c] = f(values[first + c])`, where f is the region, as in `tile.matmul`.

    If f takes the accumulators of two products, those of the second are the second half of the
    values. The outputs are adjacent in a row. They begin `behind` rows and columns after (row,
    start + column) of tile (i, j) of C, which is the place at which f reads other operands. `to` is
    the view or its map, `extents` are those of a tile, and `whole` names those of i and j whose
    tiles all lie inside the view.
    """

    values: ext.Operand[Any]
    to: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    start: ext.Operand[I32]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    first: ir.IntegerAttr
    behind: ir.ArrayAttr
    extents: ir.ArrayAttr
    whole: ir.StringAttr
    outputs: ext.Result[Any]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        if self.whole.value not in WHOLES:
            return refuse(self, f"whole must be one of {WHOLES}, got {self.whole.value!r}")
        if len(integers_of(self.behind)) != 2:
            return refuse(self, f"behind must be rows and columns, got {self.behind}")
        if len(integers_of(self.extents)) != 2:
            return refuse(self, f"extents must be those of a tile, got {self.extents}")
        if not _verify_part(self) or not verify_stored_to(self):
            return False
        values, outputs = (ir.VectorType(each.type) for each in (self.values, self.outputs))
        stored = stored_element(self.to.type)
        if outputs.element_type != stored:
            return refuse(self, f"must give elements of {stored}, got {outputs}")
        return verify_epilogue(self, self.epilogue, values.element_type, stored)


class WriteUnitOp(Tile.Operation, name="write_unit"):
    """`buffer[row, column + c] = outputs[c]`: a unit of 16 bytes."""

    outputs: ext.Operand[Any]
    buffer: ext.Operand[SmemType]
    row: ext.Operand[I32]
    column: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        got, wanted = ir.VectorType(self.outputs.type).element_type, self.buffer.type.element
        if got != wanted:
            return refuse(self, f"the buffer must hold {got}, got {wanted}")
        layout, count = self.buffer.type.layout, ir.VectorType(self.outputs.type).shape[0]
        if not lies_in_rows(layout):
            return refuse(self, f"{LINES}, got {layout}")
        unit = UNIT_BYTES // layout.element_bytes
        fits = layout.k % unit == 0 and count == unit
        return fits or refuse(self, f"must write {unit} of the buffer's elements, got {count}")


class WriteMatricesOp(Tile.Operation, name="write_matrices"):
    """Writes four 8x8 matrices to the buffer by one stmatrix; each of `outputs` is a thread's pair
    of one matrix.

    The warp's 16 rows begin at `row`, and their 16 columns at `column`. The second matrix is below
    the first, and the other two beside them. Two pairs stand for 8 columns.
    """

    buffer: ext.Operand[SmemType]
    row: ext.Operand[I32]
    outputs: Sequence[ext.Operand[Any]]
    column: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        layout = self.buffer.type.layout
        if not can_write_matrices(layout):
            return refuse(self, f"matrices need 16-bit elements, 16 columns or more, got {layout}")
        return _verify_matrices(self)


class LoadMatricesOp(Tile.Operation, name="load_matrices"):
    """`values`: 8x8 matrices of a piece, by one ldmatrix; a thread gets a pair of adjacent elements
    of each.

    They are arranged as those of `tile.write_matrices`: four, or two above each other.
    """

    piece: ext.Operand[SmemType]
    row: ext.Operand[I32]
    column: ir.IntegerAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        layout, values = self.piece.type.layout, self.values.type
        if not can_write_matrices(layout):
            return refuse(self, f"matrices need 16-bit elements, 16 columns or more, got {layout}")
        element = self.piece.type.element
        wanted = [ir.VectorType.get([count], element) for count in (STORED // 2, STORED)]
        if values not in wanted:
            return refuse(self, f"must give {wanted[0]} or {wanted[1]}, got {values}")
        column = self.column.value
        fits = column % ROWS == 0 and 0 <= column < layout.k
        return fits or refuse(
            self, f"column must be a multiple of 8 below {layout.k}, got {column}"
        )


class WritePairsOp(Tile.Operation, name="write_pairs"):
    """Like `tile.write_matrices`, by ordinary stores of the threads."""

    buffer: ext.Operand[SmemType]
    row: ext.Operand[I32]
    outputs: Sequence[ext.Operand[Any]]
    column: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        layout = self.buffer.type.layout
        if not lies_in_rows(layout):
            return refuse(self, f"{LINES}, got {layout}")
        return _verify_matrices(self)


def _verify_part(op: ApplyEpilogueOp) -> bool:
    """Whether the outputs are of a part of the values."""
    found = [each.type for each in (op.values, op.outputs)]
    if not all(isinstance(each, ir.VectorType) for each in found):
        return refuse(op, f"values and outputs must be vectors, got {found[0]} and {found[1]}")
    (most,), (count,) = (ir.VectorType(each).shape for each in found)
    if most % products_of(op):
        return refuse(op, f"values must be as many of each product, got {found[0]}")
    most //= products_of(op)
    first = op.first.value
    fits = 0 <= first <= most - count
    return fits or refuse(op, f"outputs must be of {most} values, got {count} from {first} on")


def _verify_outputs(op: Any, outputs: list[ir.Value]) -> bool:
    """Whether an op writes what an epilogue gave, of the buffer's elements."""
    wanted = op.buffer.type.element
    for value in outputs:
        if not isinstance(_maker(value), ApplyEpilogueOp):
            return refuse(op, "outputs must be those of a tile.apply_epilogue")
        got = ir.VectorType(value.type).element_type
        if got != wanted:
            return refuse(op, f"the buffer must hold {got}, got {wanted}")
    return True


def _maker(value: ir.Value) -> Any:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def _verify_matrices(op: WriteMatricesOp | WritePairsOp) -> bool:
    """Whether the outputs are pairs of neighbouring matrices, and the columns in the buffer."""
    outputs = list(op.outputs)
    if not _verify_outputs(op, outputs):
        return False
    if len(outputs) not in (2, STORED // PAIR):
        return refuse(op, f"outputs must be of 2 or 4 matrices, got {len(outputs)}")
    places = [integers_of(_maker(value).behind) for value in outputs]
    (row, column), counts = places[0], {ir.VectorType(value.type).shape[0] for value in outputs}
    wanted = [
        [row + ROWS * (number % 2), column + ROWS * (number // 2)] for number in range(len(outputs))
    ]
    if counts != {PAIR} or places != wanted:
        rule = f"outputs must be pairs that lie {wanted} behind the first row and column"
        return refuse(op, f"{rule}, got {sorted(counts)} neighbours {places} behind")
    column, columns, width = op.column.value, op.buffer.type.layout.k, ROWS * len(outputs) // 2
    fits = column % ROWS == 0 and 0 <= column <= columns - width
    return fits or refuse(op, f"column must begin {width} of the buffer's {columns}, got {column}")

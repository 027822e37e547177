"""Ops that a single thread runs, in expanded loops.

tile.thread_lanes    the lanes of tensor memory that this thread's warp reads
tile.thread_row      the row of an MMA's sums that this thread has, the first if it has two
tile.thread_column   the first column that it has of that row
tile.read_row        sums of that row, from tensor memory
tile.read_rows       sums of its two rows, which it holds
tile.read_matrices   sums of its two rows, from tensor memory
tile.write_row       view[row, column + c] = f(values[c]), dropped outside the view's columns
tile.apply_to_row    outputs[c] = f(values[first + c]), of neighbours in a row
tile.write_partial   values where other CTAs of the cluster can read them
tile.partial         where such values are
tile.clear_unit      16 zero bytes of an operand tile
"""

from typing import Any

from ..integer_types import I1, I32
from ..layout import UNIT_BYTES, TileLayout
from ..mlir import ext, ir
from ..tile_types import AccumulatorType, SmemType, Tile
from ..verify import products_of, refuse, verify_epilogue

MATRIX_VALUES = (2, 4, 8, 16, 32, 64)
"""Of a row in one tcgen05.ld.16x256b of .x1 to .x32."""
SHARED_POINTER, GLOBAL_POINTER = "!llvm.ptr<3>", "!llvm.ptr<1>"
MMA_ROWS, WARP_ROWS = 64, 16  # of an MMA: the least, and of a warp's own


class ThreadLanesOp(Tile.Operation, name="thread_lanes"):
    """`lanes`: the part of a tensor-memory address that names the lanes of this thread's warp."""

    lanes: ext.Result[I32] = ext.infer_result()


class ThreadRowOp(Tile.Operation, name="thread_row"):
    """`row`: this thread's row of an MMA's accumulator; if it has two, the first."""

    sums: ext.Operand[AccumulatorType]
    row: ext.Result[I32] = ext.infer_result()


class ThreadColumnOp(Tile.Operation, name="thread_column"):
    """`column`: the first of the `neighbours` adjacent columns that this thread has of a row."""

    sums: ext.Operand[AccumulatorType]
    neighbours: ir.IntegerAttr
    column: ext.Result[I32] = ext.infer_result()


class ReadRowOp(Tile.Operation, name="read_row"):
    """`values`: accumulator elements of this thread's row of the MMA whose rows begin at `row`.

    They are adjacent, from the thread's first column and `start` columns of tensor memory on. All
    threads of the team read together.
    """

    sums: ext.Operand[AccumulatorType]
    lanes: ext.Operand[I32]
    start: ext.Operand[I32]
    row: ir.IntegerAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_values(self, self.sums.type, self.values.type, self.row.value)


class ReadRowsOp(Tile.Operation, name="read_rows"):
    """`upper`, `lower`: this thread's elements of the MMA whose rows begin at `row`.

    It has two rows, 8 apart, and two adjacent columns of every 8, of all columns or of its warp's.
    """

    sums: ext.Operand[AccumulatorType]
    row: ir.IntegerAttr
    upper: ext.Result[Any]
    lower: ext.Result[Any]

    def verify_invariants(self) -> bool:
        upper, most = self.upper.type, self.sums.type.shape[1] // 4
        count = ir.VectorType(upper).shape[0] if isinstance(upper, ir.VectorType) else 0
        if upper != self.lower.type or not count or most % count:
            wanted = f"two vectors of {most} {self.sums.type.element}, or of a part of them"
            return refuse(self, f"must give {wanted}, got {upper} and {self.lower.type}")
        return verify_values(self, self.sums.type, upper, self.row.value, WARP_ROWS)


class ReadMatricesOp(Tile.Operation, name="read_matrices"):
    """`upper`, `lower`: accumulator elements of this thread's two rows, 8 apart, from tensor
    memory.

    They belong to 16 rows of the MMA whose rows begin at `row`, in 16 lanes from `lanes` on, and to
    the columns of tensor memory from `start` on: two adjacent ones of every 8 (tcgen05.ld.16x256b).
    All threads of the team read together.
    """

    sums: ext.Operand[AccumulatorType]
    lanes: ext.Operand[I32]
    start: ext.Operand[I32]
    row: ir.IntegerAttr
    upper: ext.Result[Any]
    lower: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.upper.type != self.lower.type:
            return refuse(
                self, f"must give two vectors of a type, got {self.upper.type}, {self.lower.type}"
            )
        if not verify_values(self, self.sums.type, self.upper.type, self.row.value):
            return False
        fits = ir.VectorType(self.upper.type).shape[0] in MATRIX_VALUES
        known = ", ".join(map(str, MATRIX_VALUES))
        return fits or refuse(self, f"must give {known} values a row, got {self.upper.type}")


class WriteRowOp(Tile.Operation, name="write_row"):
    """`view[row, column + behind + c] = f(values[first + c])`: one store of `width` adjacent
    elements.

    It is dropped outside the view's columns; a store is inside or outside as a whole. `whole` is
    "j" if all tiles lie inside the view's columns, else "none". The region is f, as in
    `tile.matmul`; if it takes the accumulators of two products, those of the second are the second
    half of the values.
    """

    values: ext.Operand[Any]
    view: ext.Operand[ir.MemRefType]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    first: ir.IntegerAttr
    behind: ir.IntegerAttr
    width: ir.IntegerAttr
    whole: ir.StringAttr
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        if self.whole.value not in ("none", "j"):
            return refuse(self, f"whole must be 'none' or 'j', got {self.whole.value!r}")
        if not verify_run(self, products_of(self)):
            return False
        columns, width = self.view.type.shape[1], self.width.value
        if columns % width:
            return refuse(self, f"width must divide the {columns} columns of a row, got {width}")
        element = ir.VectorType(self.values.type).element_type
        return verify_epilogue(self, self.epilogue, element, self.view.type.element_type)


class ApplyToRowOp(Tile.Operation, name="apply_to_row"):
    """`outputs[c] = f(values[first + c])`, for adjacent elements from (row, column) of C on.

    They are for the output `to`, a view or a map of it. If `inside` is false they lie outside C,
    and f reads no other operand. The region is f, as in `tile.write_row`.
    """

    values: ext.Operand[Any]
    to: ext.Operand[Any]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    inside: ext.Operand[I1]
    first: ir.IntegerAttr
    width: ir.IntegerAttr
    outputs: ext.Result[Any]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        if not verify_run(self, products_of(self)):
            return False
        wanted = ir.VectorType.get([self.width.value], ir.F32Type.get())
        if self.outputs.type != wanted:
            return refuse(self, f"must give {wanted}, got {self.outputs.type}")
        element = ir.VectorType(self.values.type).element_type
        return verify_epilogue(self, self.epilogue, element, wanted.element_type)


class WritePartialOp(Tile.Operation, name="write_partial"):
    """`memory[row, column + behind + c] = values[first + c]`: one store of `width` adjacent
    elements.

    `memory` is a slot with the accumulator of a tile, or a `tile.workspace`, which other CTAs read.
    A store has up to 16 bytes.
    """

    values: ext.Operand[Any]
    memory: ext.Operand[Any]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    first: ir.IntegerAttr
    behind: ir.IntegerAttr
    width: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not verify_run(self) or not verify_partials(self):
            return False
        element = self.values.type.element_type.width // 8
        most = UNIT_BYTES // element
        width = self.width.value
        return most % width == 0 or refuse(self, f"width must divide {most}, got {width}")


class PartialOp(Tile.Operation, name="partial"):
    """`pointer`: the address of `memory[row, column]`, in this CTA's shared memory or in a
    workspace."""

    memory: ext.Operand[Any]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    pointer: ext.Result[Any]

    def verify_invariants(self) -> bool:
        wanted = GLOBAL_POINTER if is_global(self.memory) else SHARED_POINTER
        if str(self.pointer.type) != wanted:
            return refuse(self, f"must give {wanted}, got {self.pointer.type}")
        return verify_partials(self)


class ClearUnitOp(Tile.Operation, name="clear_unit"):
    """Zeros 16 bytes in each chunk of payload tile `tile` of slot `slot`.

    They are the `unit`-th 16 bytes of the rows from `row` on, which are contiguous within a chunk.
    """

    memory: ext.Operand[Any]
    slot: ext.Operand[I32]
    unit: ext.Operand[I32]
    tile: ir.IntegerAttr
    row: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        tiles, tile, row = self.memory.type.tiles, self.tile.value, self.row.value
        if not 0 <= tile < len(tiles) or not isinstance(tiles[tile], SmemType):
            return refuse(self, f"tile must be below {len(tiles)}, got {tile}")
        rows = tiles[tile].layout.rows
        return 0 <= row < rows or refuse(self, f"row must be below {rows}, got {row}")


def verify_values(
    op: Any, sums: AccumulatorType, values: ir.Type, row: int, rows: int = MMA_ROWS
) -> bool:
    """Whether values can be sums of a row of the MMA, of `rows` rows, that begins with `row`."""
    element = ir.VectorType(values).element_type if isinstance(values, ir.VectorType) else None
    if element != sums.element:
        return refuse(op, f"must give a vector of {sums.element}, got {values}")
    m, _ = sums.shape
    fits = row % rows == 0 and 0 <= row < m
    return fits or refuse(op, f"row must be the first of an MMA's of {m}, got {row}")


def verify_run(op: Any, products: int = 1) -> bool:
    """Whether an op takes `width` neighbours, from `first` on, of the values of each product."""
    values, first, width = op.values.type, op.first.value, op.width.value
    if not isinstance(values, ir.VectorType):
        return refuse(op, f"values must be a vector, got {values}")
    count = ir.VectorType(values).shape[0] // products
    fits = width >= 1 and 0 <= first <= count - width
    return fits or refuse(op, f"must take some of {count} values, got {width} from {first} on")


def verify_partials(op: Any) -> bool:
    """Whether an op's memory is a slot of one tile of sums, or rows of a workspace."""
    if is_global(op.memory):
        return True
    tiles = getattr(op.memory.type, "tiles", [])
    fits = len(tiles) == 1 and isinstance(tiles[0], SmemType) and tiles[0].layout.major == "k"
    return fits or refuse(op, f"memory must be of one tile of rows, got {op.memory.type}")


def is_global(memory: Any) -> bool:
    """Whether sums lie in a workspace, in global memory."""
    return isinstance(memory.type, ir.MemRefType)


def partials_layout(memory: Any) -> TileLayout:
    """How the sums lie in the slot."""
    return memory.type.tiles[0].layout

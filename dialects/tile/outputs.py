"""Several outputs of one product.

    %c = "tile.matmul"(%a, %b) ({            %d = "tile.kept"(%c) {number = 0}
    ^bb0(%acc: f32):
      "tile.keep"(%x)                        d[M,N] = x of each element
      "tile.yield"(%y) })                    c[M,N] = y

`tiling` makes a store of its own of each.
"""

from typing import Any

from ..integer_types import I32
from ..mlir import ext, ir
from ..tile_types import AccumulatorType, Tile
from ..verify import products_of, refuse, verify_epilogue

PRODUCTS = (
    "tile.matmul",
    "tile.dual_matmul",
    "tile.scaled_matmul",
    "tile.blockwise_matmul",
    "tile.weight_matmul",
    "tile.grouped_matmul",
    "tile.gathered_matmul",
    "tile.ordered_matmul",
    "tile.grouped_scaled_matmul",
    "tile.grouped_blockwise_matmul",
    "tile.grouped_dual_matmul",
    "tile.gathered_dual_matmul",
)
REDUCTIONS = ("amax", "sum")
"""Of neighbours in a row: the largest magnitude, NaN where one is; or their sum."""
GROUPS = (16, 32)


class KeepOp(Tile.Operation, name="keep"):
    """Inside the region of a `tile.matmul`: `value` is also an element of a further output.

    Outputs are numbered in the order of these ops; `tile.kept` is the whole output.
    """

    value: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        parent = self.operation.parent.opview
        around = parent.operation.name
        return around in PRODUCTS or refuse(self, f"must stand in a tile.matmul, got {around}")

    def kept_type(self, c: ir.RankedTensorType) -> ir.RankedTensorType:
        """The type of the output that it gives beside C."""
        return ir.RankedTensorType.get(list(c.shape), self.value.type)


class KeepGroupsOp(KeepOp, name="keep_groups"):
    """Inside the region of a `tile.matmul`: an output with one element per `group` adjacent
    elements in a row of C.

    The element is `reduce` of their values, in f32: "amax", the largest magnitude, or "sum". The
    last group of a row may be shorter.
    """

    group: ir.IntegerAttr
    reduce: ir.StringAttr

    def verify_invariants(self) -> bool:
        if self.value.type != ir.F32Type.get():
            return refuse(self, f"value must be f32, got {self.value.type}")
        return super().verify_invariants() and verify_reduction(self)

    def kept_type(self, c: ir.RankedTensorType) -> ir.RankedTensorType:
        *rows, columns = c.shape
        return ir.RankedTensorType.get([*rows, -(-columns // self.group.value)], self.value.type)


class KeptOp(Tile.Operation, name="kept"):
    """`output[M,N]`: the further output with this number of the `tile.matmul` that computes `c`."""

    c: ext.Operand[ir.RankedTensorType]
    number: ir.IntegerAttr
    output: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        owner: Any = self.c.owner
        name = str(getattr(owner, "name", "an argument"))
        if name not in PRODUCTS:
            return refuse(self, f"must take what a tile.matmul gives, got {name}")
        keeps: list[Any] = list(kept_by(owner.regions[0].blocks[0]))
        number = self.number.value
        if not 0 <= number < len(keeps):
            return refuse(self, f"number must be below {len(keeps)}, got {number}")
        wanted, got = keeps[number].kept_type(self.c.type), self.output.type
        return got == wanted or refuse(self, f"must give {wanted}, got {got}")


def kept_by(epilogue: ir.Block) -> list[KeepOp]:
    """What an epilogue keeps beside C, in order."""
    return [op for op in epilogue.operations if isinstance(op, KeepOp)]


def kept_of(matmul: Any) -> list[KeptOp]:
    """The further outputs of a product that are taken, by number."""
    users = [use.owner.opview for use in matmul.operation.results[0].uses]
    return sorted((op for op in users if isinstance(op, KeptOp)), key=lambda op: op.number.value)


class StoreGroupsOp(Tile.Operation, name="store_groups"):
    """`view[i*M + r, (j*N + c) / group] = reduce of f(acc[r,c])` over each `group` columns.

    C has `columns` columns; those beyond them, and rows outside the view, are dropped. The region
    is f, as in `tile.matmul`, and returns f32.
    """

    acc: ext.Operand[AccumulatorType]
    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    group: ir.IntegerAttr
    reduce: ir.StringAttr
    columns: ir.IntegerAttr
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        group, n = self.group.value, self.acc.type.shape[1] // products_of(self)
        if not verify_reduction(self) or not verify_group_view(self):
            return False
        if n % group:
            return refuse(self, f"N of the tile must be whole groups of {group}, got {n}")
        return verify_epilogue(self, self.epilogue, self.acc.type.element, ir.F32Type.get())


class WriteGroupOp(Tile.Operation, name="write_group"):
    """`view[row, column / group] = value`: the reduction of the group that begins with `column`,
    one of the `columns` of C."""

    value: ext.Operand[ir.F32Type]
    view: ext.Operand[ir.MemRefType]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    group: ir.IntegerAttr
    reduce: ir.StringAttr
    columns: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_reduction(self) and verify_group_view(self)


def verify_reduction(op: Any) -> bool:
    """Whether there is such a reduction, of so many neighbours."""
    if op.reduce.value not in REDUCTIONS:
        return refuse(op, f"reduce must be one of {REDUCTIONS}, got {op.reduce.value!r}")
    fits = op.group.value in GROUPS
    return fits or refuse(op, f"group must be one of {GROUPS}, got {op.group.value}")


def verify_group_view(op: Any) -> bool:
    """Whether the view has an f32 for each group of a row."""
    view, count = op.view.type, -(-op.columns.value // op.group.value)
    fits = view.rank == 2 and view.shape[1] == count and view.element_type == ir.F32Type.get()
    return fits or refuse(op, f"the view must be rows of {count} f32, got {view}")

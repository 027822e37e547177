"""Ops of `tile` by which one product has several outputs.

    %c = "tile.matmul"(%a, %b) ({            %d = "tile.kept"(%c) {number = 0}
    ^bb0(%acc: f32):
      "tile.keep"(%x)                        d[M,N] = x of each element
      "tile.yield"(%y) })                    c[M,N] = y

`tiling` makes a store of its own of each.
"""

from typing import Any

from .mlir import ext, ir
from .tile_types import Tile
from .verify import refuse

PRODUCTS = ("tile.matmul", "tile.scaled_matmul", "tile.grouped_matmul")


class KeepOp(Tile.Operation, name="keep"):
    """Inside the region of a `tile.matmul`: `value` is an element of a further output, too.

    Outputs are numbered in the order of these ops; `tile.kept` gives the whole one.
    """

    value: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        parent = self.operation.parent.opview
        around = parent.operation.name
        return around in PRODUCTS or refuse(self, f"must stand in a tile.matmul, got {around}")


class KeptOp(Tile.Operation, name="kept"):
    """`output[M,N]`: the further output of that number of the `tile.matmul` that gives `c`."""

    c: ext.Operand[ir.RankedTensorType]
    number: ir.IntegerAttr
    output: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        owner: Any = self.c.owner
        name = "an argument" if isinstance(owner, ir.Block) else owner.name
        if name not in PRODUCTS:
            return refuse(self, f"must take what a tile.matmul gives, got {name}")
        keeps = kept_by(owner.regions[0].blocks[0])
        number = self.number.value
        if not 0 <= number < len(keeps):
            return refuse(self, f"number must be below {len(keeps)}, got {number}")
        wanted = ir.RankedTensorType.get(list(self.c.type.shape), keeps[number].value.type)
        got = self.output.type
        return got == wanted or refuse(self, f"must give {wanted}, got {got}")


def kept_by(epilogue: ir.Block) -> list[KeepOp]:
    """What an epilogue keeps beside C, in order."""
    return [op for op in epilogue.operations if isinstance(op, KeepOp)]


def kept_of(matmul: Any) -> list[KeptOp]:
    """The further outputs of a product that are taken, by number."""
    users = [use.owner.opview for use in matmul.operation.results[0].uses]
    return sorted((op for op in users if isinstance(op, KeptOp)), key=lambda op: op.number.value)

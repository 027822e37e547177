"""Loads of operand tiles into shared memory, by threads or by TMA."""

from ..mlir import ext, ir
from ..tile_types import SmemType, TensorMapType, Tile, has_own_rows
from ..verify import (
    NUMBER_MAX,
    refuse,
    verify_boxes,
    verify_copy,
    verify_gather,
    verify_parts,
    verify_tensor_map,
)


class LoadOp(Tile.Operation, name="load"):
    """`t[r,k] = view[i*R + r, j*K + k]`, zero outside the view; all threads copy.

    A tile of a view of scales (`tile.scaled_matmul`) is blocked: it gets the whole atoms that
    contain the scales of rows i*R to i*R + R - 1 and blocks j*K to j*K + K - 1.
    """

    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    tile: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        return verify_copy(self, self.view.type, self.tile.type)


class CopyOp(Tile.Operation, name="copy"):
    """`t[r,k] = view[i*R + r, j*K + k]` into a slot's tile, zero outside the view.

    All threads of the producer copy, and `pipe.commit` publishes what they wrote. Once loops are
    expanded, `whole` names those of i and j whose tiles all lie inside the view. For linear scales,
    `shared` is the number of rows and of blocks that share a scale, unless each has its own.
    """

    view: ext.Operand[ir.MemRefType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_copy(self, self.view.type, self.tile.type)


class CopyTogetherOp(Tile.Operation, name="copy_together", traits=[ir.NoTerminatorTrait]):
    """Runs the copies of all `tile.copy` in its body together, which shift bytes in registers.

    Rows may start anywhere in 16 bytes. A thread starts the loads of all tiles before it stores the
    first.
    """

    body: ext.Region

    def verify_invariants(self) -> bool:
        if len(self.body.blocks) != 1 or len(self.body.blocks[0].arguments):
            return refuse(self, "the body must be one block without arguments")
        others = [op for op in self.body.blocks[0].operations if not isinstance(op, CopyOp)]
        if others or not list(self.body.blocks[0].operations):
            got = others[0].operation.name if others else "nothing"
            return refuse(self, f"the body must hold tile.copy alone, got {got}")
        return True


class TensorMapOp(Tile.Operation, name="tensor_map"):
    """`map`: how TMA sees `view`; becomes a kernel parameter."""

    view: ext.Operand[ir.MemRefType]
    map: ext.Result[TensorMapType]

    def verify_invariants(self) -> bool:
        return verify_tensor_map(self, self.map.type)


class TmaLoadOp(Tile.Operation, name="tma_load"):
    """`t[r,k] = view[i*R + r, j*K + k]` by TMA, zero outside the view; one thread issues.

    If a view has fewer rows than a K-major tile, its boxes may have only these rows. If the launch
    gives the number of rows, it also gives that of the boxes.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_boxes(self)

    @property
    def missing_rows(self) -> int:
        """Rows of the tile that the view does not have and the box leaves out: they are zero."""
        layout = self.tile.type.layout
        return 0 if layout.is_of_scales else layout.rows - abs(self.map.type.box[1])

    @property
    def has_own_rows(self) -> bool:
        """Whether a launch says how many rows the boxes have, up to those of the tile."""
        return has_own_rows(self.map.type)

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows that its boxes load is known only when the kernel runs."""
        return self.has_own_rows


class TmaGatherOp(Tile.Operation, name="tma_gather"):
    """`t[r,k] = view[i*R + r, j*K + k]` by TMA, four rows of `tile.gathered_rows` a copy.

    A box is one row of a chunk of K. The threads of the team share the copies.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_gather(self)


class TmaMulticastOp(Tile.Operation, name="tma_multicast"):
    """`t[r,k] = view[i*R + r, j*K + k]` in `parts` CTAs of the cluster at once.

    The CTAs in line along `axis` ("m" or "n"; with pairs, every second one along M) need the same
    tile: each loads its part of the rows, and TMA writes it to all of them.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    axis: ir.StringAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_parts(self)

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows that its boxes load is known only when the kernel runs."""
        return False


class RotatedStepOp(Tile.Operation, name="rotated_step"):
    """`step = (k + place / together * by) mod steps`: the K step that a CTA loads at loop step k.

    Each run of `together` adjacent places, the first of which is a multiple of it, takes the steps
    in the same order.
    """

    k: ext.Operand[ir.IndexType]
    place: ext.Operand[ir.IndexType]
    steps: ir.IntegerAttr
    together: ir.IntegerAttr
    by: ir.IntegerAttr
    step: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        for name in ("steps", "together", "by"):
            value = getattr(self, name).value
            if not 1 <= value <= NUMBER_MAX:
                return refuse(self, f"{name} must be 1 to {NUMBER_MAX}, got {value}")
        return True

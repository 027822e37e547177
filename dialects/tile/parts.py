"""Split-K: partial sums of a cluster, or of the grid through global memory.

    tile.split_rank      which part of K this CTA sums
    tile.split_start     with which step along K it begins, of a K that a launch says
    tile.reduced_store   view[i*M + r, j*N + c] = f(sum over the cluster of acc[r,c], in rank order)
    tile.workspace       this tile's part of memory that the launch gives besides the arguments
    tile.gathered_store  view[i*M + r, j*N + c] = f(sum over the grid's parts of acc[r,c], in order)

CTAs of one place along x and y of the grid, and of every place along z, have the same tile of C.
"""

from typing import Any

from ..mlir import ext, ir
from ..tile_types import AccumulatorType, Tile, element_bytes
from ..verify import refuse, summed_extents, verify_epilogue, verify_smem

ANY, ZERO = "any", "zero"
STARTS = (ANY, ZERO)


class SplitRankOp(Tile.Operation, name="split_rank"):
    """`rank`: which part of K this CTA sums; the CTAs of the grid along z share one tile of C."""

    rank: ext.Result[ir.IndexType]


class SplitStartOp(Tile.Operation, name="split_start"):
    """`first = rank * steps`: the K step with which this CTA's part of K begins.

    Every part has the same number of `steps`, which a `tile.group_steps` computes; steps past the
    end of K load zeros.
    """

    rank: ext.Operand[ir.IndexType]
    steps: ext.Operand[ir.IndexType]
    first: ext.Result[ir.IndexType]


class ReducedStoreOp(Tile.Operation, name="reduced_store"):
    """`view[i*M + r, j*N + c] = f(acc_0[r,c] + acc_1[r,c] + ...)`, dropped outside the view.

    `acc_s` is the accumulator of the CTA of rank s along z. Every CTA writes its own to the one
    slot of `partials`, in its shared memory. It stores the rows r = rank mod CTAs, which it sums
    over the cluster in the order of ranks; for a transposed view these are rows of C as it is
    stored. The region is f, as in `tile.matmul`.
    """

    acc: ext.Operand[AccumulatorType]
    partials: ext.Operand[Any]
    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        smem, acc = self.partials.type.tiles[0], self.acc.type
        wanted = "{}x{}".format(*summed_extents(self)) + f" of {acc.element}"
        got = f"{smem.layout.mn}x{smem.layout.k} of {smem.element}"
        if got != wanted:
            return refuse(self, f"partials must be {wanted}, got {got}")
        if smem.layout.major != "k":
            return refuse(self, f"partials must be rows, got major {smem.layout.major!r}")
        if not verify_smem(self, smem):
            return False
        return verify_epilogue(
            self, self.epilogue, self.acc.type.element, self.view.type.element_type
        )


class WorkspaceOp(Tile.Operation, name="workspace"):
    """`memory`: rows in global memory that the CTAs of one tile share.

    `start` says what a launch finds there: "any", or "zero", which the kernel then restores. The
    launch provides memory for every place along x and y of the grid.
    """

    start: ir.StringAttr
    memory: ext.Result[ir.MemRefType]

    def verify_invariants(self) -> bool:
        if self.start.value not in STARTS:
            return refuse(self, f"start must be one of {STARTS}, got {self.start.value!r}")
        type_ = ir.MemRefType(self.memory.type)
        space = type_.memory_space
        if type_.rank == 2 and min(type_.shape) > 0 and str(space).startswith("1"):
            return True
        return refuse(self, f"must give rows in global memory, got {type_}")


class GatheredStoreOp(Tile.Operation, name="gathered_store"):
    """`view[i*M + r, j*N + c] = f(acc_0[r,c] + acc_1[r,c] + ...)`, dropped outside the view.

    `acc_p` is the accumulator of the CTA at p along z of the grid. Each CTA writes its own to the
    rows from p*M on of `partials`, and counts itself in at the one word of `arrivals`. Each element
    is summed in the order of p and stored by one CTA: the last one, or, if all CTAs of the grid can
    run at once, one of those that have waited for all. No CTA waits for longer than a limit, and
    the last one resets the word to zero. The region is f, as in `tile.matmul`.
    """

    acc: ext.Operand[AccumulatorType]
    partials: ext.Operand[ir.MemRefType]
    arrivals: ext.Operand[ir.MemRefType]
    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        (rows, columns), (m, n) = self.partials.type.shape, summed_extents(self)
        element = self.partials.type.element_type
        if rows % m or columns != n or element != self.acc.type.element:
            wanted = f"parts of {m} rows of {n} of {self.acc.type.element}"
            return refuse(self, f"partials must be {wanted}, got {self.partials.type}")
        words = self.arrivals.type
        if list(words.shape) != [1, 1] or str(words.element_type) != "i32":
            return refuse(self, f"arrivals must be one word of i32, got {words}")
        if not all(_is_workspace(each) for each in (self.partials, self.arrivals)):
            return refuse(self, "partials and arrivals must be of tile.workspace, got others")
        element = self.view.type.element_type
        return verify_epilogue(self, self.epilogue, self.acc.type.element, element)

    @property
    def parts(self) -> int:
        """How many parts of K there are."""
        return self.partials.type.shape[0] // summed_extents(self)[0]


def _is_workspace(memory: ir.Value) -> bool:
    return not isinstance(memory.owner, ir.Block) and isinstance(memory.owner.opview, WorkspaceOp)


def workspace_bytes(op: Any) -> int:
    """Bytes of a workspace for one tile."""
    type_ = ir.MemRefType(op.memory.type)
    rows, columns = type_.shape
    return rows * columns * element_bytes(type_.element_type)

"""The basic ops of a kernel: the product, its tiles, MMAs, stores and epilogue."""

from typing import Any

from ..dtypes import DTYPES, operand_dtype
from ..entry_names import name_refusal
from ..fallback import verify_fallback
from ..integer_types import I1
from ..layout import MAJORS
from ..mlir import ext, ir
from ..ragged_maps import parts_of_rows
from ..tile_types import (
    DYNAMIC,
    AccumulatorType,
    SmemType,
    TensorMapType,
    Tile,
    integers_of,
    stored_element,
)
from ..verify import (
    can_write_matrices,
    logical_shape,
    refuse,
    tile_of_c,
    verify_epilogue,
    verify_smem,
    verify_stored_to,
    verify_tile,
    verify_tile_loop,
)
from .outputs import StoreGroupsOp
from .parts import GatheredStoreOp, ReducedStoreOp
from .quantized import StoreQuantizedOp

AXES = ("", "m", "n", "mn", "b", "bm", "bn", "bmn")
WRITES = ("rows", "matrices")


class MatmulOp(Tile.Operation, name="matmul"):
    """`c[M,N] = f(sum_k a[M,K] * b[N,K])` on whole tensors.

    `a_major` "k" means that a is stored [M,K], "mn" [K,M]; likewise b is [N,K] or [K,N]. The region
    is f; its argument is the sum, i32 for integers and f32 otherwise. If c is a stack [B,M,N], then
    a, b or both have such a first dim too, and there is one product per matrix.
    """

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    a_major: ir.StringAttr
    b_major: ir.StringAttr
    c: ext.Result[ir.RankedTensorType]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        majors = (self.a_major.value, self.b_major.value)
        if any(major not in MAJORS for major in majors):
            return refuse(self, f"a_major and b_major must be 'k' or 'mn', got {majors}")
        return self._verify_extents() and self._verify_types()

    def _verify_extents(self) -> bool:
        """Whether matrices, or stacks of them, go together."""
        m, k = logical_shape(self.a.type, self.a_major.value)
        n, b_k = logical_shape(self.b.type, self.b_major.value)
        if k != b_k:
            return refuse(self, f"a and b must have the same K, got {k} and {b_k}")
        batches = {tuple(list(each.type.shape)[:-2]) for each in (self.a, self.b)} - {()}
        if len(batches) > 1 or any(len(each) > 1 for each in batches):
            got = f"{list(self.a.type.shape)} and {list(self.b.type.shape)}"
            return refuse(self, f"a and b must be matrices, or stacks of one length, got {got}")
        wanted = [*(batches.pop() if batches else ()), m, n]
        if list(self.c.type.shape) != wanted:
            dynamic = ir.ShapedType.get_dynamic_size()
            wanted, got = (
                "x".join("?" if extent == dynamic else str(extent) for extent in each)
                for each in (wanted, self.c.type.shape)
            )
            return refuse(self, f"c must be {wanted}, got {got}")
        return True

    def _verify_types(self) -> bool:
        """What an MMA takes, and what the epilogue makes of its sums."""
        dtype = operand_dtype(str(self.a.type.element_type))
        if dtype is None:
            return refuse(self, f"a must hold what an MMA takes, got {self.a.type.element_type}")
        sums = ir.Type.parse(DTYPES[dtype.accumulator].mlir)
        count = (self.products,)
        return verify_epilogue(self, self.epilogue, sums, self.c.type.element_type, count)

    @property
    def products(self) -> int:
        """How many products of `a` the region takes sums of."""
        return 1


class KernelOp(
    Tile.Operation, name="kernel", traits=[ir.IsIsolatedFromAboveTrait, ir.NoTerminatorTrait]
):
    """The program that every CTA of `grid`, in clusters of `cluster`, runs with `threads` threads.

    If `fallback` gives the shape of a smaller cluster, several of these may start in the place of
    one. Block arguments are the views a, b, other epilogue operands and c, named by `arg_names`. If
    c has a dynamic number of rows, or of matrices, the launch gives it, and a grid of -1 along x
    has a CTA for each M tile, in whole clusters.
    """

    sym_name: ir.StringAttr
    grid: ir.ArrayAttr
    cluster: ir.ArrayAttr
    threads: ir.IntegerAttr
    arg_names: ir.ArrayAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        reason = name_refusal(self.sym_name.value)
        if reason:
            return refuse(self, reason)
        if len(self.body.blocks) != 1:
            return refuse(self, f"the body must be one block, got {len(self.body.blocks)}")
        arguments = self.body.blocks[0].arguments
        if len(arguments) != len(self.arg_names):
            return refuse(
                self, f"arg_names must name {len(arguments)} arguments, got {len(self.arg_names)}"
            )
        if any(not isinstance(argument.type, ir.MemRefType) for argument in arguments):
            return refuse(self, "every argument must be a memref view of global memory")
        grid, cluster = integers_of(self.grid), integers_of(self.cluster)
        counted = grid[:2].count(DYNAMIC) == 1
        known = [each for each in grid if each != DYNAMIC] if counted else grid
        if (
            len(grid) != 3
            or len(cluster) != 3
            or min(*known, *cluster) < 1
            or any(g % c for g, c in zip(grid, cluster, strict=True) if g != DYNAMIC)
        ):
            return refuse(self, f"the grid must be whole clusters, got {grid} and {cluster}")
        if not verify_fallback(self, cluster):
            return False
        threads = self.threads.value
        if threads % 32 or not 32 <= threads <= 1024:
            return refuse(self, f"threads must be whole warps, 32 to 1024, got {threads}")
        return True


class CtaTileOp(Tile.Operation, name="cta_tile"):
    """`(i, j)`: the M and N tile that this CTA computes."""

    i: ext.Result[ir.IndexType]
    j: ext.Result[ir.IndexType]


class AccumulatorOp(Tile.Operation, name="accumulator"):
    """`acc[M,N]`, undefined until the first mma with `accumulate` false."""

    acc: ext.Result[AccumulatorType]

    def verify_invariants(self) -> bool:
        return verify_tile(self, self.acc.type.tile)


class PairRankOp(Tile.Operation, name="pair_rank"):
    """`rank`: 0 in the first CTA of a pair (the one that issues its MMAs), 1 in the second."""

    rank: ext.Result[ir.IndexType]


class PairMmaOp(Tile.Operation, name="pair_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a[M,K] * b[N,K]^T` by a pair of CTAs.

    `acc` and `a` are this CTA's M rows; `b` is its half of the N rows, the other half is in the
    peer's shared memory at the same place.
    """

    acc: ext.Operand[AccumulatorType]
    a: ext.Operand[SmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[I1]

    def verify_invariants(self) -> bool:
        if not all(verify_smem(self, operand.type) for operand in (self.a, self.b)):
            return False
        a, b = self.a.type.layout, self.b.type.layout
        if a.k != b.k:
            return refuse(self, f"a and b must have the same K, got {a.k} and {b.k}")
        if self.acc.type.shape != (a.mn, 2 * b.mn):
            return refuse(self, f"acc must be {(a.mn, 2 * b.mn)}, got {self.acc.type.shape}")
        return True


class MmaOp(Tile.Operation, name="mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a[M,K] * b[N,K]^T`."""

    acc: ext.Operand[AccumulatorType]
    a: ext.Operand[SmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[I1]

    def verify_invariants(self) -> bool:
        if not all(verify_smem(self, operand.type) for operand in (self.a, self.b)):
            return False
        a, b = self.a.type.layout, self.b.type.layout
        if a.k != b.k:
            return refuse(self, f"a and b must have the same K, got {a.k} and {b.k}")
        if self.acc.type.shape != (a.mn, b.mn):
            return refuse(self, f"acc must be {(a.mn, b.mn)}, got {self.acc.type.shape}")
        return True


class AwaitMmaOp(Tile.Operation, name="await_mma"):
    """Waits until all but the `pending` newest of the MMAs that this agent issued are done.

    It is for targets on which an agent waits for its MMAs before it releases their operands.
    Elsewhere the release itself follows the MMAs.
    """

    pending: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if self.pending.value < 0:
            return refuse(self, f"pending must be at least 0, got {self.pending.value}")
        return True


class StoreOp(Tile.Operation, name="store"):
    """`view[i*M + r, j*N + c] = f(acc[r,c])`, dropped outside the view.

    The region is f, as in `tile.matmul`.
    """

    acc: ext.Operand[AccumulatorType]
    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        return verify_epilogue(
            self, self.epilogue, self.acc.type.element, self.view.type.element_type
        )


class StagedStoreOp(Tile.Operation, name="staged_store"):
    """`view[i*M + r, j*N + c] = f(acc[r,c])` through shared memory, by TMA or by threads.

    The tile goes out in pieces of the staging ring's width: written to one of its buffers, then
    stored by TMA where `to` is a tensor map, or by all threads where `to` is the view itself. What
    lies outside the view is dropped. `write` says how threads write a piece: "rows", each its own,
    or "matrices" of 8x8 16-bit elements (stmatrix). The region is f, as in `tile.matmul`.

    Where the boxes of the map have fewer rows than a piece, each warpgroup writes and stores its
    own rows of all pieces, and waits for no other.
    """

    acc: ext.Operand[AccumulatorType]
    to: ext.Operand[Any]
    staging: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    write: ir.StringAttr
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        if self.write.value not in WRITES:
            return refuse(self, f"write must be one of {WRITES}, got {self.write.value!r}")
        layout = self.staging.type.tiles[0].layout
        m, n = tile_of_c(self)
        if layout.mn != m or n % layout.k:
            return refuse(
                self, f"staging must hold {m} rows of a divisor of {n} columns, got {layout}"
            )
        if not verify_stored_to(self):
            return False
        if isinstance(self.to.type, TensorMapType) and not parts_of_rows(self.to.type, layout):
            box = [layout.span, layout.rows]
            return refuse(self, f"the box must be {box}, got {self.to.type.box}")
        if self.write.value == "matrices" and not can_write_matrices(layout):
            return refuse(self, f"matrices need 16-bit elements, 16 columns or more, got {layout}")
        if self.write.value == "rows" and layout.major != "k":
            return refuse(self, f"rows need a staging whose rows lie in line, got {layout}")
        element = stored_element(self.to.type)
        return verify_epilogue(self, self.epilogue, self.acc.type.element, element)

    @property
    def parts(self) -> int:
        """How many warpgroups store their own rows, each by itself; 1 where all store together."""
        if not isinstance(self.to.type, TensorMapType):
            return 1
        return parts_of_rows(self.to.type, self.staging.type.tiles[0].layout)


class ElementOp(Tile.Operation, name="element"):
    """`value`: the element of `source` that belongs to the element which the epilogue computes.

    `axes` are the axes by which the source is indexed: "m" (one value per row), "n" (per column),
    "mn", or "" (one value for all). In a `tile.matmul` of stacks they may begin with "b", the first
    dim.
    """

    source: ext.Operand[Any]
    axes: ir.StringAttr
    value: ext.Result[Any]

    def verify_invariants(self) -> bool:
        axes, source = self.axes.value, self.source.type
        if axes not in AXES:
            return refuse(self, f"axes must be one of {AXES}, got {axes!r}")
        if not isinstance(source, ir.ShapedType) or source.rank != len(axes):
            return refuse(self, f"the source must have rank {len(axes)} for {axes!r}, got {source}")
        if self.value.type != source.element_type:
            return refuse(self, f"must give {source.element_type}, got {self.value.type}")
        return True


class ForEachTileOp(Tile.Operation, name="for_each_tile", traits=[ir.NoTerminatorTrait]):
    """Runs the body for every tile `(i, j)` of this CTA, one after the other.

    `tiles` is the number of tiles of C along M and N; `order` ("m", "n", "grouped" or "hilbert")
    and `group` (tiles along M) give the order in which tiles are handed out. Clusters take tiles in
    turn: the next tile of a cluster is as many tiles further as there are clusters in the grid.
    """

    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        return verify_tile_loop(self)


class YieldOp(Tile.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    """`value`: the result of f for one element."""

    value: ext.Operand[Any]


STORES = (
    StoreOp,
    StagedStoreOp,
    ReducedStoreOp,
    GatheredStoreOp,
    StoreGroupsOp,
    StoreQuantizedOp,
)
MMAS = (MmaOp, PairMmaOp)

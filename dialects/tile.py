"""The `tile` dialect: what one CTA computes, with no barrier and no address.

    tile.matmul       c[M,N] = f(sum_k a[M,K] * b[N,K])        on whole tensors
    tile.kernel       the program of one CTA over views of global memory
    tile.cta_tile     (i, j): which M and N tile this CTA computes
    tile.for_each_tile  runs a body for every (i, j) that falls to this CTA
    tile.accumulator  acc[M,N], undefined until the first mma
    tile.load         t[r,k] = view[i*R + r, j*K + k], zero outside the view
    tile.tensor_map   how TMA sees a view: dims, strides, box, swizzle
    tile.tma_load     t[r,k] = view[i*R + r, j*K + k] by TMA, zero outside the view
    tile.tma_multicast  the same, each of several CTAs loading a part for all of them
    tile.copy         t[r,k] = view[i*R + r, j*K + k] by the producer's threads, likewise
    tile.mma          acc[M,N] = (accumulate ? acc : 0) + a[M,K] * b[N,K]^T
    tile.pair_mma     the same by two CTAs: each has its rows of a and acc and half of b
    tile.pair_rank    0 in the first CTA of a pair, 1 in the second
    tile.store        view[i*M + r, j*N + c] = f(acc[r,c]), dropped outside the view
    tile.staged_store view[i*M + r, j*N + c] = f(acc[r,c]) through shared memory and TMA
    tile.element      inside f: the element of another operand beside the one computed
    tile.yield        ends the region that computes f on one element

Views are memrefs in global memory (space 1), logically [M,K], [N,K] and [M,N]; their strides say
which axis is contiguous. Indices count tiles.
"""

from typing import Any

from .layout import MAJORS, SPAN_BYTES, TileLayout
from .mlir import ext, ir

AXES = ("m", "n", "mn")
ORDERS = ("m", "n", "grouped")
WRITES = ("rows", "matrices")


class Tile(ext.Dialect, name="tile"):
    """What one CTA computes."""


class SmemType(Tile.Type, name="smem"):
    """An operand tile in shared memory: [MN, K] elements, major axis, swizzle."""

    tile_attr: ir.TypeAttr
    major_attr: ir.StringAttr
    swizzle_attr: ir.StringAttr

    @staticmethod
    def of(layout: TileLayout, element: ir.Type) -> "SmemType":
        """The type of a tile of `element` in `layout`."""
        tile = ir.RankedTensorType.get([layout.mn, layout.k], element)
        major, swizzle = (ir.StringAttr.get(name) for name in (layout.major, layout.swizzle))
        return SmemType.get(tile, major, swizzle)

    @property
    def tile(self) -> ir.RankedTensorType:
        return ir.RankedTensorType(ir.TypeAttr(self.tile_attr).value)

    @property
    def element(self) -> ir.Type:
        return self.tile.element_type

    @property
    def layout(self) -> TileLayout:
        mn, k = self.tile.shape
        major, swizzle = text_of(self.major_attr), text_of(self.swizzle_attr)
        return TileLayout(mn, k, element_bytes(self.element), major, swizzle)


class AccumulatorType(Tile.Type, name="acc"):
    """An [M, N] accumulator in the place that the target keeps it."""

    tile_attr: ir.TypeAttr

    @staticmethod
    def of(m: int, n: int, element: ir.Type) -> "AccumulatorType":
        """The type of an [m, n] accumulator of `element`."""
        return AccumulatorType.get(ir.RankedTensorType.get([m, n], element))

    @property
    def tile(self) -> ir.RankedTensorType:
        return ir.RankedTensorType(ir.TypeAttr(self.tile_attr).value)

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.tile.shape)

    @property
    def element(self) -> ir.Type:
        return self.tile.element_type


class TensorMapType(Tile.Type, name="map"):
    """What cuTensorMapEncodeTiled is told: element, dims, strides (bytes), box, swizzle.

    Dimension 0 is the contiguous one; `strides` are those of dimensions 1 and up.
    """

    element_attr: ir.TypeAttr
    dims_attr: ir.ArrayAttr
    strides_attr: ir.ArrayAttr
    box_attr: ir.ArrayAttr
    swizzle_attr: ir.StringAttr

    @staticmethod
    def of(
        element: ir.Type, dims: list[int], strides: list[int], box: list[int], swizzle: str
    ) -> "TensorMapType":
        """The map type with those encode arguments."""
        arrays = (integers(values) for values in (dims, strides, box))
        return TensorMapType.get(element, *arrays, ir.StringAttr.get(swizzle))

    @property
    def element(self) -> ir.Type:
        return ir.TypeAttr(self.element_attr).value

    @property
    def dims(self) -> list[int]:
        return integers_of(self.dims_attr)

    @property
    def strides(self) -> list[int]:
        return integers_of(self.strides_attr)

    @property
    def box(self) -> list[int]:
        return integers_of(self.box_attr)

    @property
    def swizzle(self) -> str:
        return text_of(self.swizzle_attr)


class MatmulOp(Tile.Operation, name="matmul"):
    """`c[M,N] = f(sum_k a[M,K] * b[N,K])` on whole tensors.

    `a_major` "k" means that a is stored [M,K], "mn" [K,M]; likewise b is [N,K] or [K,N].
    The region is f; its argument is the f32 sum.
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
        m, k = logical_shape(self.a.type, self.a_major.value)
        n, b_k = logical_shape(self.b.type, self.b_major.value)
        if k != b_k:
            return refuse(self, f"a and b must have the same K, got {k} and {b_k}")
        if list(self.c.type.shape) != [m, n]:
            return refuse(self, f"c must be {m}x{n}, got {list(self.c.type.shape)}")
        return verify_epilogue(self, ir.F32Type.get(), self.c.type.element_type)


class KernelOp(
    Tile.Operation, name="kernel", traits=[ir.IsIsolatedFromAboveTrait, ir.NoTerminatorTrait]
):
    """The program that every CTA of `grid`, in clusters of `cluster`, runs with `threads` threads.

    Block arguments are the views a, b, other epilogue operands and c, named by `arg_names`.
    """

    sym_name: ir.StringAttr
    grid: ir.ArrayAttr
    cluster: ir.ArrayAttr
    threads: ir.IntegerAttr
    arg_names: ir.ArrayAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
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
        if (
            len(grid) != 3
            or len(cluster) != 3
            or any(g % c for g, c in zip(grid, cluster, strict=True))
        ):
            return refuse(self, f"the grid must be whole clusters, got {grid} and {cluster}")
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


class LoadOp(Tile.Operation, name="load"):
    """`t[r,k] = view[i*R + r, j*K + k]`, zero outside the view; all threads copy."""

    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    tile: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        return verify_copy(self)


class CopyOp(Tile.Operation, name="copy"):
    """`t[r,k] = view[i*R + r, j*K + k]` into a slot's tile, zero outside the view.

    All threads of the producer copy; `pipe.commit` publishes what they wrote.
    """

    view: ext.Operand[ir.MemRefType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_copy(self)


class TensorMapOp(Tile.Operation, name="tensor_map"):
    """`map`: how TMA sees `view`; becomes a kernel parameter."""

    view: ext.Operand[ir.MemRefType]
    map: ext.Result[TensorMapType]

    def verify_invariants(self) -> bool:
        return verify_tensor_map(self, self.map.type)


class TmaLoadOp(Tile.Operation, name="tma_load"):
    """`t[r,k] = view[i*R + r, j*K + k]` by TMA, zero outside the view; one thread issues."""

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        layout, map_type = self.tile.type.layout, self.map.type
        if layout.swizzle != map_type.swizzle:
            return refuse(
                self,
                "tile and tensor map must have one swizzle, got "
                f"{layout.swizzle} and {map_type.swizzle}",
            )
        rank2, rank3 = [layout.span, layout.rows], [layout.span, layout.rows, layout.chunks]
        if map_type.box not in (rank2, rank3):
            return refuse(self, f"the box must be {rank2} or {rank3}, got {map_type.box}")
        return True


class TmaMulticastOp(Tile.Operation, name="tma_multicast"):
    """`t[r,k] = view[i*R + r, j*K + k]` in `parts` CTAs of the cluster at once.

    The CTAs in a line along `axis` ("m" or "n"; with pairs, every second along M) need the same
    tile: each loads its part of the rows and TMA writes it to all of them.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    axis: ir.StringAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        layout, parts = self.tile.type.layout, self.parts.value
        if self.axis.value not in ("m", "n"):
            return refuse(self, f"axis must be 'm' or 'n', got {self.axis.value!r}")
        if parts < 2 or layout.rows % (8 * parts):
            return refuse(self, f"{layout.rows} rows must be {parts} parts of whole 8 rows")
        box = [layout.span, layout.rows // parts]
        if self.map.type.box != box:
            return refuse(self, f"the box must be {box}, got {self.map.type.box}")
        return True


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
    accumulate: ext.Operand[ir.IntegerType[1]]

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
    accumulate: ext.Operand[ir.IntegerType[1]]

    def verify_invariants(self) -> bool:
        if not all(verify_smem(self, operand.type) for operand in (self.a, self.b)):
            return False
        a, b = self.a.type.layout, self.b.type.layout
        if a.k != b.k:
            return refuse(self, f"a and b must have the same K, got {a.k} and {b.k}")
        if self.acc.type.shape != (a.mn, b.mn):
            return refuse(self, f"acc must be {(a.mn, b.mn)}, got {self.acc.type.shape}")
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
        return verify_epilogue(self, self.acc.type.element, self.view.type.element_type)


class StagedStoreOp(Tile.Operation, name="staged_store"):
    """`view[i*M + r, j*N + c] = f(acc[r,c])` through shared memory, by TMA.

    The tile goes out in pieces of the staging ring's width: written to one of its buffers, then
    stored by TMA, which drops what lies outside the view. `write` says how threads write a piece:
    "rows", each its own, or "matrices" of 8x8 16-bit elements (stmatrix). The region is f, as in
    `tile.matmul`.
    """

    acc: ext.Operand[AccumulatorType]
    map: ext.Operand[TensorMapType]
    staging: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    write: ir.StringAttr
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        if self.write.value not in WRITES:
            return refuse(self, f"write must be one of {WRITES}, got {self.write.value!r}")
        layout = self.staging.type.tiles[0].layout
        m, n = self.acc.type.shape
        if layout.mn != m or n % layout.k:
            return refuse(
                self, f"staging must hold {m} rows of a divisor of {n} columns, got {layout}"
            )
        if self.map.type.box != [layout.k, m]:
            return refuse(self, f"the box must be {[layout.k, m]}, got {self.map.type.box}")
        if self.write.value == "matrices" and not can_write_matrices(layout):
            return refuse(self, f"matrices need 16-bit elements, 16 columns or more, got {layout}")
        return verify_epilogue(self, self.acc.type.element, self.map.type.element)


class ElementOp(Tile.Operation, name="element"):
    """`value`: the element of `source` beside the one that the epilogue computes.

    `axes` says what the source is indexed by: "m" (one value a row), "n" (a column) or "mn".
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
    """Runs the body for every tile `(i, j)` that falls to this CTA, one after the other.

    `tiles` is how many tiles C has along M and N; `order` ("m", "n" or "grouped") and `group`
    (tiles along M) say in which order tiles are handed out. Clusters take turns: the next tile of
    a cluster is as many further as there are clusters in the grid.
    """

    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        return verify_tile_loop(self)


class YieldOp(Tile.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    """`value`: what f gives for one element."""

    value: ext.Operand[Any]


STORES = (StoreOp, StagedStoreOp)
MMAS = (MmaOp, PairMmaOp)


def text_of(attribute: ir.Attribute) -> str:
    """The text of a string attribute that came back untyped."""
    return ir.StringAttr(attribute).value


def integers(values: list[int]) -> ir.ArrayAttr:
    """An array attribute of i64."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, value) for value in values])


def integers_of(attribute: ir.Attribute) -> list[int]:
    """The values of an array attribute of integers."""
    return [ir.IntegerAttr(value).value for value in ir.ArrayAttr(attribute)]


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element of an integer or float type."""
    return element.width // 8


def logical_shape(stored: ir.RankedTensorType, major: str) -> tuple[int, int]:
    """(MN, K) of an operand tensor that is stored [MN,K] ("k") or [K,MN] ("mn")."""
    rows, columns = stored.shape
    return (rows, columns) if major == "k" else (columns, rows)


def refuse(op: ext.Operation, rule: str) -> bool:
    """Report `rule` at the op and fail verification."""
    op.location.emit_error(f"{op.operation.name}: {rule}")
    return False


def verify_smem(op: ext.Operation, smem: SmemType) -> bool:
    """Whether the tile's major axis and swizzle exist and can hold it."""
    major, swizzle = text_of(smem.major_attr), text_of(smem.swizzle_attr)
    if major not in MAJORS:
        return refuse(op, f"major must be one of {MAJORS}, got {major!r}")
    if swizzle not in SPAN_BYTES:
        return refuse(op, f"swizzle must be one of {tuple(SPAN_BYTES)}, got {swizzle!r}")
    reason = smem.layout.fits()
    return refuse(op, reason) if reason else True


def can_write_matrices(piece: TileLayout) -> bool:
    """Whether stmatrix can write the piece: two 8x8 matrices of 16-bit elements side by side."""
    return piece.element_bytes == 2 and piece.k % 16 == 0


def verify_copy(op: ext.Operation) -> bool:
    """Whether a view's elements can be copied into the tile."""
    if not verify_smem(op, op.tile.type):
        return False
    view, tile = op.view.type.element_type, op.tile.type.element
    if view != tile:
        return refuse(op, f"view and tile must have one element type, got {view} and {tile}")
    return True


def verify_tensor_map(op: ext.Operation, map_type: TensorMapType) -> bool:
    """The rules of cuTensorMapEncodeTiled that the type alone can break."""
    dims, strides, box = map_type.dims, map_type.strides, map_type.box
    if not 1 <= len(dims) <= 5 or len(box) != len(dims) or len(strides) != len(dims) - 1:
        return refuse(
            op,
            "dims and box must have one rank of 1 to 5 and strides one less, got "
            f"{len(dims)}, {len(box)} and {len(strides)}",
        )
    if any(not 1 <= extent <= 256 for extent in box):
        return refuse(op, f"box extents must be 1 to 256 elements, got {box}")
    if any(stride % 16 or not 0 <= stride < 2**40 for stride in strides):
        return refuse(op, f"strides must be multiples of 16 bytes below 2^40, got {strides}")
    swizzle = map_type.swizzle
    if swizzle not in SPAN_BYTES:
        return refuse(op, f"swizzle must be one of {tuple(SPAN_BYTES)}, got {swizzle!r}")
    inner_bytes = box[0] * element_bytes(map_type.element)
    if inner_bytes % 16:
        return refuse(op, f"box rows must be a multiple of 16 bytes, got {inner_bytes}")
    if swizzle != "none" and inner_bytes > SPAN_BYTES[swizzle]:
        return refuse(
            op, f"box rows must be at most {SPAN_BYTES[swizzle]} bytes, got {inner_bytes}"
        )
    return True


def verify_tile_loop(op: ext.Operation) -> bool:
    """Whether a loop over tiles knows its order and gives its body (i, j)."""
    if op.order.value not in ORDERS:
        return refuse(op, f"order must be one of {ORDERS}, got {op.order.value!r}")
    arguments = [str(argument.type) for argument in op.body.blocks[0].arguments]
    if arguments != ["index", "index"]:
        return refuse(op, f"the body must take (i, j), got {arguments}")
    return True


def verify_epilogue(op: ext.Operation, accumulator: ir.Type, output: ir.Type) -> bool:
    """Whether the region takes one accumulator element and yields one of `output`."""
    if len(op.epilogue.blocks) != 1:
        return refuse(op, f"the epilogue must be one block, got {len(op.epilogue.blocks)}")
    block = op.epilogue.blocks[0]
    found = [str(argument.type) for argument in block.arguments]
    if found != [str(accumulator)]:
        return refuse(op, f"the epilogue must take one {accumulator}, got {found}")
    last = list(block.operations)[-1]
    if last.operation.name != "tile.yield" or last.operation.operands[0].type != output:
        return refuse(op, f"the epilogue must end in a tile.yield of {output}")
    return True

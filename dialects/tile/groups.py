"""Grouped GEMM: groups of rows of one matrix, each multiplied by its own matrix.

    tile.grouped_matmul   c[r,N] = f(sum_k a[r,K] * b[g,N,K]) for every row r of group g
                          c[g,M,N] = f(sum_k a[M,k] * b[N,k]) over every k of group g
    tile.gathered_matmul  c[r,N] = f(sum_k a[rows[r],K] * b[g,N,K]) for every row r of group g
    tile.ordered_matmul   c[g,M,N] = f(sum_k a[M,k] * b[N,k]) as above, of the groups in an order
    tile.group            (group, row, first, count): the group, and the M tile in it, of a place
    tile.group_at         the same, found by the lanes of a warp together
    tile.group_starts     where the groups of each lane begin, and the places of all groups
    tile.group_rows       rows `first` to `first + count` of a view or tensor map
    tile.gathered_rows    rows `rows[first]` to `rows[first + count - 1]` of a view or tensor map
    tile.group_depth      (first, count): the part of K that a group has
    tile.group_columns    columns `first` to `first + count` of a view or tensor map
    tile.group_steps      how many steps of a loop over K a group takes

Group g has the rows from `offsets[g - 1]`, the first one from 0, to `offsets[g]`, an i32 in global
memory that the kernel reads. An offset before the one in front of it, or past the rows, counts as
the nearest that is neither. Where K is grouped, group g has what is from `offsets[g - 1]`, or from
0, to `offsets[g]`, each taken as the nearest from 0 to K: nothing where the second one is less.

A number in `rows`, an i32 in global memory, counts as the nearest that a has a row of.
"""

from typing import Any

from ...runtime.group_sizes import OFFSETS as OFFSETS
from ...runtime.group_sizes import ORDER as ORDER
from ...runtime.group_sizes import ROWS as ROWS
from ...runtime.group_sizes import rows_of_atoms as rows_of_atoms
from ...runtime.group_sizes import tiles_of_groups as tiles_of_groups
from ..integer_types import I32
from ..layout import MAJORS
from ..mlir import ext, ir
from ..tile_types import DYNAMIC, Tile
from ..verify import logical_shape, refuse
from .program import MatmulOp


class GroupedMatmulOp(MatmulOp, name="grouped_matmul"):
    """`c[r,N] = f(sum_k a[r,K] * b[g,N,K])` for every row r of group g.

    Like `tile.matmul` of a matrix `a`, stored [M,K], and a stack `b` with a matrix for each group.
    Rows past the last group are not written.

    Of two matrices K is grouped: `c[g,M,N] = f(sum_k a[M,k] * b[N,k])` over every k of group g, and
    f(0) where it has none. Both are stored with K as their rows.
    """

    offsets: ext.Operand[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        majors = (self.a_major.value, self.b_major.value)
        if any(major not in MAJORS for major in majors):
            return refuse(self, f"a_major and b_major must be 'k' or 'mn', got {majors}")
        ranks = [each.type.rank for each in (self.a, self.b, self.c)]
        if ranks not in ([2, 3, 2], [2, 2, 3]):
            rule = "a and c must be matrices and b a stack, or a and b matrices and c a stack"
            return refuse(self, f"{rule}, got ranks {ranks}")
        if not self.of_depth:
            return verify_group_rows(self) and self._verify_types()
        if majors != ("mn", "mn"):
            rule = "a_major and b_major must be 'mn' where K is grouped"
            return refuse(self, f"{rule}, got {majors}")
        if not _verify_sizes(self) or not _verify_ends(self, self.c.type.shape[0]):
            return False
        return self._verify_types()

    @property
    def of_depth(self) -> bool:
        """Whether K is grouped, and no rows."""
        return self.c.type.rank == 3


class GatheredMatmulOp(GroupedMatmulOp, name="gathered_matmul"):
    """`c[r,N] = f(sum_k a[rows[r],K] * b[g,N,K])` for every row r of group g.

    Like `tile.grouped_matmul` with groups of rows; `rows` says where in `a` they are.
    """

    rows: ext.Operand[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        if not verify_numbers(self):
            return False
        if self.of_depth:
            return refuse(
                self, "rows of a must be gathered where rows are grouped, got groups of K"
            )
        return GroupedMatmulOp.verify_invariants(self)


class OrderedMatmulOp(GroupedMatmulOp, name="ordered_matmul"):
    """`c[g,M,N] = f(sum_k a[M,k] * b[N,k])` over every k of group g, for the groups in `order`.

    Like `tile.grouped_matmul` with groups of K; the tiles of the first group in `order` come first.
    """

    order: ext.Operand[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        if not self.of_depth:
            return refuse(self, "an order must be that of groups of K, got groups of rows")
        if self.order.type != self.offsets.type:
            return refuse(self, f"order must be {self.offsets.type}, got {self.order.type}")
        return GroupedMatmulOp.verify_invariants(self)


def verify_numbers(op: Any) -> bool:
    """Whether the numbers of gathered rows are a vector of i32."""
    numbers, i32 = op.rows.type, ir.IntegerType.get_signless(32)
    if numbers.rank != 1 or numbers.element_type != i32:
        return refuse(op, f"rows must be a vector of i32, got {numbers}")
    return True


def verify_group_rows(op: Any) -> bool:
    """Whether a is a matrix whose rows are grouped, b a stack of a matrix each, and c has a's rows.

    Of gathered rows c has as many as there are numbers.
    """
    ranks = [each.type.rank for each in (op.a, op.b, op.c)]
    if ranks != [2, 3, 2]:
        rule = "a and c must be matrices and b a stack where rows are grouped"
        return refuse(op, f"{rule}, got ranks {ranks}")
    if op.a_major.value != "k":
        rule = "a_major must be 'k' where rows are grouped"
        return refuse(op, f"{rule}, got {op.a_major.value!r}")
    return _verify_sizes(op) and _verify_ends(op, op.b.type.shape[0])


def _verify_sizes(op: Any) -> bool:
    """Whether a and b have one K, and c their rows."""
    m, k = logical_shape(op.a.type, op.a_major.value)
    n, b_k = logical_shape(op.b.type, op.b_major.value)
    if k != b_k:
        return refuse(op, f"a and b must have the same K, got {k} and {b_k}")
    rows = getattr(op, "rows", None)
    m = m if rows is None else rows.type.shape[0]
    got = list(op.c.type.shape)[-2:]
    return got == [m, n] or refuse(op, f"c must be {m}x{n}, got {got}")


def _verify_ends(op: Any, groups: int) -> bool:
    """Whether there is an offset for each group."""
    wanted = ir.RankedTensorType.get([groups], ir.IntegerType.get_signless(32))
    got = op.offsets.type
    return got == wanted or refuse(op, f"offsets must be {wanted}, got {got}")


class GroupOp(Tile.Operation, name="group"):
    """`(group, row, first, count)` of the place `i` along M.

    A place is `tile` rows of a group, and each group has a multiple of `together` places. The place
    has `count` rows, from row `first` of all rows on; past the last group it has 0. There are
    `extent` rows in all; -1 means that the launch gives them.
    """

    i: ext.Operand[ir.IndexType]
    offsets: ext.Operand[ir.MemRefType]
    tile: ir.IntegerAttr
    together: ir.IntegerAttr
    extent: ir.IntegerAttr
    group: ext.Result[ir.IndexType]
    row: ext.Result[ir.IndexType]
    first: ext.Result[ir.IndexType]
    count: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        return _verify_cut(self) and verify_offsets(self)


class GroupAtOp(GroupOp, name="group_at"):
    """Like `tile.group`, but the lanes of a warp find the group together. Each lane knows where its
    own groups begin (`tile.group_starts`). All 32 lanes run it."""

    at_row: ext.Operand[I32]
    at_place: ext.Operand[I32]


class GroupStartsOp(Tile.Operation, name="group_starts"):
    """The place at which the groups of a lane begin: lane l of each warp has the groups from `l *
    ceil(groups / 32)` on, that many each.

    `row` is the first row of the lane's groups, and `place` the number of places along M before
    them, as in `tile.group`. `count` is the number of places of all groups. All 32 lanes run it.
    """

    offsets: ext.Operand[ir.MemRefType]
    tile: ir.IntegerAttr
    together: ir.IntegerAttr
    extent: ir.IntegerAttr
    row: ext.Result[I32]
    place: ext.Result[I32]
    count: ext.Result[I32]

    def verify_invariants(self) -> bool:
        return _verify_cut(self) and verify_offsets(self)


def _verify_cut(op: Any) -> bool:
    """Whether groups are cut into tiles of rows, as many as an extent says or a launch."""
    *sizes, extent = (each.value for each in (op.tile, op.together, op.extent))
    if min(sizes) >= 1 and (extent >= 1 or extent == DYNAMIC):
        return True
    rule = f"tile and together must be at least 1, and extent too, or {DYNAMIC} of any rows"
    return refuse(op, f"{rule}, got {[*sizes, extent]}")


def _verify_part(op: Any) -> bool:
    """A part has the type of its whole."""
    if op.part.type == op.whole.type:
        return True
    return refuse(op, f"must give {op.whole.type}, got {op.part.type}")


class GroupRowsOp(Tile.Operation, name="group_rows"):
    """`part`: the rows `first` to `first + count` of `whole`, a view or a tensor map.

    Its type is that of `whole`, which says how many rows there are at most. Loads of rows after
    the last one may give those of `whole`; stores to them are dropped.
    """

    whole: ext.Operand[Any]
    first: ext.Operand[ir.IndexType]
    count: ext.Operand[ir.IndexType]
    part: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _verify_part(self)


class GatheredRowsOp(GroupRowsOp, name="gathered_rows"):
    """`part`: the rows `rows[first]` to `rows[first + count - 1]` of `whole`, in this order.

    Its type is that of `whole`, with as many rows as `rows` has elements. Loads of rows after the
    last one may return any row of `whole`.
    """

    rows: ext.Operand[ir.MemRefType]

    def verify_invariants(self) -> bool:
        numbers, i32 = self.rows.type, ir.IntegerType.get_signless(32)
        if numbers.rank != 1 or numbers.element_type != i32:
            return refuse(self, f"rows must be a vector of i32, got {numbers}")
        whole: Any = self.whole.type
        if not isinstance(whole, ir.MemRefType):
            return _verify_part(self)
        wanted = gathered_view(whole, numbers.shape[0])
        return self.part.type == wanted or refuse(self, f"must give {wanted}, got {self.part.type}")


def gathered_view(whole: ir.MemRefType, rows: int) -> ir.MemRefType:
    """The type of so many rows of a matrix, each at a place of its own."""
    return ir.MemRefType.get(
        [rows, *whole.shape[1:]], whole.element_type, whole.layout, whole.memory_space
    )


class GroupDepthOp(Tile.Operation, name="group_depth"):
    """`(first, count)`: group `group` has `count` of the `extent` elements along K, from `first`
    on.

    An extent of -1 is known only at launch.
    """

    group: ext.Operand[ir.IndexType]
    offsets: ext.Operand[ir.MemRefType]
    extent: ir.IntegerAttr
    first: ext.Result[ir.IndexType]
    count: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        if self.extent.value < 1 and self.extent.value != DYNAMIC:
            rule = f"extent must be at least 1, or {DYNAMIC} of any K"
            return refuse(self, f"{rule}, got {self.extent.value}")
        return verify_offsets(self)


class GroupColumnsOp(Tile.Operation, name="group_columns"):
    """`part`: the columns `first` to `first + count` of `whole`, a view or a tensor map.

    Its type is that of `whole`, which says how many columns there are at most. Loads of columns
    after the last one give zero.
    """

    whole: ext.Operand[Any]
    first: ext.Operand[ir.IndexType]
    count: ext.Operand[ir.IndexType]
    part: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _verify_part(self)


class GroupStepsOp(Tile.Operation, name="group_steps"):
    """`steps = ceil(count / depth) - less`, at least `least` and at most `most`.

    It is the bound of a loop over K tiles of `depth`. Further steps up to `most` would add nothing.
    """

    count: ext.Operand[ir.IndexType]
    depth: ir.IntegerAttr
    less: ir.IntegerAttr
    least: ir.IntegerAttr
    most: ir.IntegerAttr
    steps: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        depth, less, least, most = (
            each.value for each in (self.depth, self.less, self.least, self.most)
        )
        if depth < 1 or less < 0 or not 1 <= least <= most:
            rule = "depth must be at least 1, less at least 0 and least from 1 to most"
            return refuse(self, f"{rule}, got {depth}, {less}, {least} and {most}")
        return True


def verify_offsets(op: Any) -> bool:
    """Whether the offsets that an op reads are a vector of i32."""
    offsets = op.offsets.type
    if offsets.rank == 1 and offsets.element_type == ir.IntegerType.get_signless(32):
        return True
    return refuse(op, f"offsets must be a vector of i32, got {offsets}")

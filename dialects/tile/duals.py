"""Dual GEMM: two products of one A, with one epilogue of both accumulators.

    tile.dual_matmul   c[M,N] = f(sum_k a[M,k] * b[N,k], sum_k a[M,k] * b2[N,k])
    tile.dual_mma      acc[M,N] += a[M,K] * b[N,K]^T, and acc[M,N+n] += a[M,K] * b2[N,K]^T
    tile.dual_pair_mma the same by two CTAs
    tile.join          one vector of two: what a thread has of the one product, then of the other

A tile of C has one accumulator, twice as wide: the sums of b in the first half of its columns,
those of b2 in the second. So a tile's N counts the columns of both products, and everything that
holds or moves sums is as for one product. What stores them knows by its region, which takes two.
"""

from typing import Any

from ..layout import TileLayout
from ..mlir import ext, ir
from ..tile_types import SmemType, Tile
from ..verify import logical_shape, refuse, verify_smem
from .program import MatmulOp, MmaOp, PairMmaOp


class DualMatmulOp(MatmulOp, name="dual_matmul"):
    """`c[M,N] = f(sum_k a[M,k] * b[N,k], sum_k a[M,k] * b2[N,k])`.

    Like `tile.matmul`; b2 is as large as b and of its type, and may lie otherwise (`b2_major`).
    """

    b2: ext.Operand[ir.RankedTensorType]
    b2_major: ir.StringAttr

    def verify_invariants(self) -> bool:
        if not MatmulOp.verify_invariants(self):
            return False
        major = self.b2_major.value
        if major not in ("k", "mn"):
            return refuse(self, f"b2_major must be 'k' or 'mn', got {major!r}")
        found = [
            (list(each.shape)[:-2], logical_shape(each, major), str(each.element_type))
            for each, major in ((self.b.type, self.b_major.value), (self.b2.type, major))
        ]
        got = f"{self.b.type} and {self.b2.type}"
        return found[0] == found[1] or refuse(self, f"b2 must be as b, got {got}")

    @property
    def products(self) -> int:
        return 2


class DualMmaOp(MmaOp, name="dual_mma"):
    """`acc[M,c] = (accumulate ? acc : 0) + a[M,K] * b[c,K]^T` for c < N/2, and the same with b2 for
    the other N/2 columns.

    `acc` has N columns; `b` and `b2` have N/2 rows each.
    """

    b2: ext.Operand[SmemType]

    def verify_invariants(self) -> bool:
        return _verify_tiles(self, 1)


class DualPairMmaOp(PairMmaOp, name="dual_pair_mma"):
    """Like `tile.dual_mma`, by a pair of CTAs, as `tile.pair_mma`: each has half of the rows of b
    and of b2."""

    b2: ext.Operand[SmemType]

    def verify_invariants(self) -> bool:
        return _verify_tiles(self, 2)


class JoinOp(Tile.Operation, name="join"):
    """`values[c] = first[c]`, `values[n + c] = second[c]`, where each has n elements."""

    first: ext.Operand[Any]
    second: ext.Operand[Any]
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        first, second, values = self.first.type, self.second.type, self.values.type
        if not isinstance(first, ir.VectorType) or first != second:
            return refuse(self, f"must join two vectors of a type, got {first} and {second}")
        wanted = ir.VectorType.get([2 * ir.VectorType(first).shape[0]], first.element_type)
        return values == wanted or refuse(self, f"must give {wanted}, got {values}")


DUAL_MMAS = (DualMmaOp, DualPairMmaOp)


def joined_layout(b: TileLayout, b2: TileLayout) -> TileLayout | None:
    """How two tiles that follow one another in a slot lie as one; None where they do not.

    Chunks of a K-major tile hold all its rows, so that two tiles are one only where each is a
    chunk. Those of an MN-major tile follow one another along MN.
    """
    whole = TileLayout(2 * b.mn, b.k, b.element_bytes, b.major, b.swizzle)
    together = b == b2 and b.slot_bytes == b.size_bytes
    return whole if together and (b.major == "mn" or b.chunks == 1) else None


def _verify_tiles(op: Any, ctas: int) -> bool:
    if not all(verify_smem(op, each.type) for each in (op.a, op.b, op.b2)):
        return False
    a, b, b2 = (each.type.layout for each in (op.a, op.b, op.b2))
    if op.b2.type.element != op.b.type.element or (b.mn, b.k) != (b2.mn, b2.k):
        return refuse(op, f"b2 must be as large as b and of its type, got {b2} for {b}")
    if a.k != b.k:
        return refuse(op, f"a and b must have the same K, got {a.k} and {b.k}")
    wanted = (a.mn, 2 * ctas * b.mn)
    return op.acc.type.shape == wanted or refuse(
        op, f"acc must be {wanted}, got {op.acc.type.shape}"
    )

"""MMAs of the last tile along K, if it extends past the end of K.

    tile.short_mma       acc[M,N] = (accumulate ? acc : 0) + a[M,K] * b[N,K]^T, or of a[:,:depth]
    tile.short_dual_mma  the same of two products, as `tile.dual_mma`

`tile.short_pair_mma` and `tile.short_dual_pair_mma` are those of a pair of CTAs.

What lies past the end of K is zeros, and an MMA instruction multiplies 32 bytes of K. Those that
would multiply zeros alone are left out.
"""

from typing import Any

from ..integer_types import I1
from ..mlir import ext, ir
from ..verify import refuse
from .duals import DualMmaOp, DualPairMmaOp
from .program import MmaOp, PairMmaOp


class ShortMmaOp(MmaOp, name="short_mma"):
    """Like `tile.mma`; if `last` is true, it multiplies only the first `depth` elements along K."""

    last: ext.Operand[I1]
    depth: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return MmaOp.verify_invariants(self) and _verify_depth(self)


class ShortDualMmaOp(DualMmaOp, name="short_dual_mma"):
    """Like `tile.dual_mma`, with `last` and `depth` as in `tile.short_mma`."""

    last: ext.Operand[I1]
    depth: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return DualMmaOp.verify_invariants(self) and _verify_depth(self)


class ShortPairMmaOp(PairMmaOp, name="short_pair_mma"):
    """Like `tile.pair_mma`, with `last` and `depth` as in `tile.short_mma`."""

    last: ext.Operand[I1]
    depth: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return PairMmaOp.verify_invariants(self) and _verify_depth(self)


class ShortDualPairMmaOp(DualPairMmaOp, name="short_dual_pair_mma"):
    """Like `tile.dual_pair_mma`, with `last` and `depth` as in `tile.short_mma`."""

    last: ext.Operand[I1]
    depth: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return DualPairMmaOp.verify_invariants(self) and _verify_depth(self)


SHORT_OF: dict[type, Any] = {
    MmaOp: ShortMmaOp,
    DualMmaOp: ShortDualMmaOp,
    PairMmaOp: ShortPairMmaOp,
    DualPairMmaOp: ShortDualPairMmaOp,
}
SHORT_MMAS = tuple(SHORT_OF.values())
SHORT_ALONE, SHORT_PAIRS = SHORT_MMAS[:2], SHORT_MMAS[2:]


def _verify_depth(op: Any) -> bool:
    depth, k = op.depth.value, op.a.type.layout.k
    return 0 < depth < k or refuse(op, f"depth must be positive and below {k}, got {depth}")

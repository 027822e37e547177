"""Operands with one f32 scale per 128 elements of K, and two-level accumulation.

    tile.blockwise_matmul  c[M,N] = f(sum_q sa[M,q] * sb[N,q] * sum_k a[M,k] * b[N,k]), k of block q
    tile.blockwise_mma     acc[M,N] = (accumulate ? acc : 0) + sa * sb * (a[M,K] * b[N,K]^T)
    tile.blockwise_pair_mma  the same by a pair of CTAs

No MMA multiplies by such scales. The product of two tiles is summed apart, from zero, by the tensor
core. Threads multiply it by both scales, and add it to the sums in f32, which also keeps sums exact
where the tensor core has fewer bits for them (Hopper, 8-bit floats).

A form says which elements share a scale, and how an array of scales lies: 1x128 has one for every
row, [blocks of K, rows]; 128x128 one for 128 rows, [blocks of rows, blocks of K], its rows rounded
up to four (torch 2.13, `BlockWise1x128` and `BlockWise128x128`, whose tensors are views of these).
"""

from typing import Any

from ..dtypes import BLOCKWISE, BLOCKWISE_FORMS, blockwise_scale_shape
from ..mlir import ext, ir
from ..tile_types import SmemType
from ..verify import logical_shape, refuse
from .program import MatmulOp, MmaOp, PairMmaOp


class BlockwiseMatmulOp(MatmulOp, name="blockwise_matmul"):
    """`c[M,N] = f(sum_q a_scales[M,q] * b_scales[N,q] * sum_k a[M,k] * b[N,k])`, k of block q.

    Like `tile.matmul`, also of stacks, with scales in f32. `a_form` and `b_form` are "1x128" or
    "128x128", and one of them is "1x128".
    """

    a_scales: ext.Operand[ir.RankedTensorType]
    b_scales: ext.Operand[ir.RankedTensorType]
    a_form: ir.StringAttr
    b_form: ir.StringAttr

    def verify_invariants(self) -> bool:
        if not MatmulOp.verify_invariants(self):
            return False
        if not _verify_forms(self):
            return False
        for name in "ab":
            stored, major = getattr(self, name).type, getattr(self, f"{name}_major").value
            rows, k = logical_shape(stored, major)
            form, got = getattr(self, f"{name}_form").value, getattr(self, f"{name}_scales").type
            stack = list(stored.shape)[:-2]
            wanted = [*stack, *blockwise_scale_shape(form, rows, k)]
            if list(got.shape) != wanted or str(got.element_type) != "f32":
                shown = "x".join(map(str, wanted))
                rule = f"{name}_scales must be tensor<{shown}xf32> for {form}"
                return refuse(self, f"{rule}, got {got}")
        return True


class BlockwiseMmaOp(MmaOp, name="blockwise_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a_scales * b_scales * (a[M,K] * b[N,K]^T)`.

    The tiles are the `i`-th of A, the `j`-th of B and the `k`-th along K, all within one block of
    K. The scales of an operand are either a view, from which threads read those of these places, or
    a vector in shared memory with one scale per row of its tile. The op is complete when it is
    issued.
    """

    a_scales: ext.Operand[Any]
    b_scales: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    a_form: ir.StringAttr
    b_form: ir.StringAttr

    def verify_invariants(self) -> bool:
        return MmaOp.verify_invariants(self) and _verify_steps(self)

    @property
    def vectors(self) -> list[ir.Value[SmemType]]:
        """The scales that lie in shared memory."""
        return _vectors(self)


class BlockwisePairMmaOp(PairMmaOp, name="blockwise_pair_mma"):
    """Like `tile.blockwise_mma`, by a pair of CTAs, as `tile.pair_mma`.

    `i` is this CTA's tile of A, whose scales it has; each CTA has the scales of all N columns.
    """

    a_scales: ext.Operand[Any]
    b_scales: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    a_form: ir.StringAttr
    b_form: ir.StringAttr

    def verify_invariants(self) -> bool:
        return PairMmaOp.verify_invariants(self) and _verify_steps(self)

    @property
    def vectors(self) -> list[ir.Value[SmemType]]:
        """The scales that lie in shared memory."""
        return _vectors(self)


BLOCKWISE_MMAS = (BlockwiseMmaOp, BlockwisePairMmaOp)
OF_BLOCKS = ("a_scales", "b_scales", "i", "j", "k", "a_form", "b_form")


def _vectors(op: Any) -> list[ir.Value[SmemType]]:
    return [each for each in (op.a_scales, op.b_scales) if isinstance(each.type, SmemType)]


def _verify_steps(op: Any) -> bool:
    """Whether tiles are of one block of K, and scales lie as their forms say."""
    depth = op.a.type.layout.k
    if not _verify_forms(op):
        return False
    if BLOCKWISE % depth:
        return refuse(op, f"tiles must have a K that divides {BLOCKWISE}, got {depth}")
    return all(_verify_scales(op, name, depth) for name in "ab")


def _verify_scales(op: Any, name: str, depth: int) -> bool:
    """Whether scales are a view, or a vector of those of a tile's rows."""
    type_, form = getattr(op, f"{name}_scales").type, getattr(op, f"{name}_form").value
    if isinstance(type_, ir.MemRefType):
        return True
    rows = op.acc.type.shape["ab".index(name)]
    wanted = isinstance(type_, SmemType) and str(type_.tile) == f"tensor<1x{rows}xf32>"
    if not wanted or not type_.layout.is_vector:
        rule = f"{name}_scales must be a view, or a linear tile of 1x{rows}xf32"
        return refuse(op, f"{rule}, got {type_}")
    if form != BLOCKWISE_FORMS[0] or depth != BLOCKWISE:
        rule = f"{name}_scales must be a view where a step has no scale of its own for each row"
        return refuse(op, f"{rule}, got {form} and a K of {depth}")
    return True


def _verify_forms(op: Any) -> bool:
    forms = (op.a_form.value, op.b_form.value)
    if not set(forms) <= set(BLOCKWISE_FORMS) or "1x128" not in forms:
        rule = "a_form and b_form must be '1x128' or '128x128', one of them '1x128'"
        return refuse(op, f"{rule}, got {forms}")
    return True

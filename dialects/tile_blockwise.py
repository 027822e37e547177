"""Ops of `tile` on operands with a scale in f32 for every 128 elements of K: two-level sums.

    tile.blockwise_matmul  c[M,N] = f(sum_q sa[M,q] * sb[N,q] * sum_k a[M,k] * b[N,k]), k of block q
    tile.blockwise_mma     acc[M,N] = (accumulate ? acc : 0) + sa * sb * (a[M,K] * b[N,K]^T)

No MMA multiplies by such scales. The product of two tiles is summed apart, from zero, by the tensor
core. Threads multiply it by both scales, and add it to the sums in f32, which also keeps sums exact
where the tensor core has fewer bits for them (Hopper, 8-bit floats).

A form says which elements share a scale, and how an array of scales lies: 1x128 has one for every
row, [blocks of K, rows]; 128x128 one for 128 rows, [blocks of rows, blocks of K], its rows rounded
up to four (torch 2.13, `BlockWise1x128` and `BlockWise128x128`, whose tensors are views of these).
"""

from typing import Any

from .dtypes import BLOCKWISE, BLOCKWISE_FORMS, blockwise_scale_shape
from .mlir import ext, ir
from .tile import MatmulOp, MmaOp
from .verify import logical_shape, refuse


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

    The tiles are the `i`-th of A, the `j`-th of B and the `k`-th along K, all of one block of K.
    Threads read their scales from the views; it is complete when it is issued.
    """

    a_scales: ext.Operand[ir.MemRefType]
    b_scales: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    a_form: ir.StringAttr
    b_form: ir.StringAttr

    def verify_invariants(self) -> bool:
        if not MmaOp.verify_invariants(self) or not _verify_forms(self):
            return False
        depth = self.a.type.layout.k
        return BLOCKWISE % depth == 0 or refuse(
            self, f"tiles must have a K that divides {BLOCKWISE}, got {depth}"
        )


def _verify_forms(op: Any) -> bool:
    forms = (op.a_form.value, op.b_form.value)
    if not set(forms) <= set(BLOCKWISE_FORMS) or "1x128" not in forms:
        rule = "a_form and b_form must be '1x128' or '128x128', one of them '1x128'"
        return refuse(op, f"{rule}, got {forms}")
    return True

"""MMAs with block scales in `sm`, and copies of scales to tensor memory."""

from typing import Any

from ..dtypes import (
    DTYPES,
    SCALE_DTYPES,
    SCALED_DTYPES,
    SCALED_KINDS,
    ScaledMma,
    scaled_mma_of_kind,
)
from ..integer_types import I1, I32
from ..layout import MAJORS
from ..mlir import ext, ir
from ..verify import refuse
from .types import (
    CTA_GROUPS,
    DescriptorType,
    Instruction,
    verify_choice,
    verify_descriptor,
    verify_matrix_offset,
)

COPIED_ROWS = (32, 64)
IDS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}  # bytes of a word that a K slice's scales may begin at


class TmemCopyOp(Instruction, name="tmem_copy"):
    """Starts a copy of rows of 16 bytes to 4 columns of each quarter of the lanes.

    The rows begin `offset` bytes after the descriptor's place. 32 of them go to each quarter
    (tcgen05.cp.32x128b.warpx4), of 64 the first to quarters 0 and 1 and the others to 2 and 3
    (64x128b.warpx2::01_23). With `cta_group` 2 each CTA of the pair copies from its own shared
    memory. MMAs that this thread starts later find what it copied.
    """

    to: ext.Operand[I32]
    source: ext.Operand[DescriptorType]
    rows: ir.IntegerAttr
    offset: ir.IntegerAttr
    cta_group: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return (
            verify_descriptor(self, self.source.type)
            and verify_choice(self, "rows", COPIED_ROWS)
            and verify_matrix_offset(self, "offset", self.offset.value)
            and verify_choice(self, "cta_group", CTA_GROUPS)
        )


class ScaledMmaOp(Instruction, name="scaled_mma"):
    """`d[m,n] = (accumulate ? d : 0) + (a * a_scales)[m,k] * (b * b_scales)[n,k]^T`.

    `d`, `a_scales` and `b_scales` are addresses in tensor memory; of the words at the scales, those
    from byte `a_id` and `b_id` on are read. Each `block` elements along K share a scale. The other
    fields are those of `sm.mma` (tcgen05.mma.block_scale).
    """

    d: ext.Operand[I32]
    a: ext.Operand[DescriptorType]
    b: ext.Operand[DescriptorType]
    accumulate: ext.Operand[I1]
    a_scales: ext.Operand[I32]
    b_scales: ext.Operand[I32]
    kind: ir.StringAttr
    block: ir.IntegerAttr
    scale: ir.StringAttr
    cta_group: ir.IntegerAttr
    m: ir.IntegerAttr
    n: ir.IntegerAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    a_major: ir.StringAttr
    b_major: ir.StringAttr
    a_offset: ir.IntegerAttr
    b_offset: ir.IntegerAttr
    a_id: ir.IntegerAttr
    b_id: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not _verify_kind(self) or not verify_choice(self, "cta_group", CTA_GROUPS):
            return False
        n, group = self.n.value, self.cta_group.value
        rows = (128, 256)[:group]
        if self.m.value not in rows:
            got = f"with cta_group {group}, got {self.m.value}"
            return refuse(self, f"m must be {' or '.join(map(str, rows))} {got}")
        if n % (8 * group) or not 0 < n <= 256:
            return refuse(self, f"n must be a multiple of {8 * group} up to 256, got {n}")
        return all(self._verify_side(name) for name in "ab")

    def _verify_side(self, name: str) -> bool:
        mma, side = mma_of_kind(self), f"{name}_type"
        known = ("e2m1",) if mma.packed else SCALED_DTYPES
        majors = MAJORS if DTYPES[known[0]].bits == 8 else MAJORS[:1]
        offset: Any = getattr(self, f"{name}_offset").value
        return (
            verify_choice(self, side, known)
            and verify_choice(self, f"{name}_major", majors)
            and verify_choice(self, f"{name}_id", IDS[mma.blocks])
            and verify_matrix_offset(self, f"{name}_offset", offset)
        )


class ScaledMmaSyncOp(Instruction, name="scaled_mma_sync"):
    """`sum[16,8] = d + (a * a_scales)[16,k] * (b * b_scales)[8,k]^T` by a warp, of `sm.mma_sync`.

    K is that of the kind. `a_scales` and `b_scales` are words of four scales, of which those from
    byte `id` on count: of A those of lane 4r + h, for row r + 8h, of B those of lane 4c, for column
    c (PTX ISA, block scaling for mma.sync, with thread-id 0).
    """

    d: ext.Operand[Any]
    a: ext.Operand[ir.VectorType]
    b: ext.Operand[ir.VectorType]
    a_scales: ext.Operand[I32]
    b_scales: ext.Operand[I32]
    kind: ir.StringAttr
    block: ir.IntegerAttr
    scale: ir.StringAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    id: ir.IntegerAttr
    sum: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.sum.type != self.d.type:
            return refuse(self, f"must give a {self.d.type}, got a {self.sum.type}")
        if not _verify_kind(self):
            return False
        mma = mma_of_kind(self)
        known = ("e2m1",) if mma.packed else SCALED_DTYPES
        words = [list(each.type.shape) for each in (self.a, self.b)]
        if words != [[4], [2]]:
            return refuse(self, f"a and b must have 4 and 2 words, got {words}")
        return all(verify_choice(self, f"{name}_type", known) for name in "ab") and verify_choice(
            self, "id", IDS[mma.blocks]
        )


def mma_of_kind(op: ScaledMmaOp | ScaledMmaSyncOp) -> ScaledMma:
    """The MMA that an op says; its verifier knows that there is one."""
    found = scaled_mma_of_kind(op.kind.value, op.block.value, op.scale.value)
    assert found is not None
    return found


def _verify_kind(op: ScaledMmaOp | ScaledMmaSyncOp) -> bool:
    if not verify_choice(op, "kind", SCALED_KINDS) or not verify_choice(op, "scale", SCALE_DTYPES):
        return False
    kind, block, scale = op.kind.value, op.block.value, op.scale.value
    if scaled_mma_of_kind(kind, block, scale) is None:
        return refuse(op, f"block must be one that {kind} has with {scale}, got {block}")
    return True

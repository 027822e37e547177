"""Operands with block scales: one factor per `block` elements along K.

    tile.scaled_matmul     c[M,N] = f(sum_k a[M,k] * sa[M,k/B] * b[N,k] * sb[N,k/B])
    tile.scaled_mma        acc[M,N] = (accumulate ? acc : 0) + the same of tiles
    tile.scaled_pair_mma   the same by two CTAs

Scales lie "blocked" in memory: in atoms of 128 rows by 4 blocks of K, 512 bytes each, those along K
one after the other. Byte r % 32 * 16 + r / 32 * 4 + k of an atom is the scale of row r and block k.
A tensor of them is [rows/128, blocks/4, 32, 4, 4]; atoms hang over where there are no whole ones,
and nobody reads the scales of rows and blocks that the operand does not have. In global memory they
may also lie "linear", [rows, blocks], of which threads make atoms as they copy. Linear ones of
[rows, blocks/4] or [rows/128, blocks/4] are for 128 elements of K, of a row or of 128 rows: they
are repeated in the atoms.
"""

from typing import Any

from ..dtypes import (
    DTYPES,
    SCALED_DTYPES,
    ScaledMma,
    scale_dtype,
    scaled_dtype,
    scaled_mma,
    scales_refusal,
)
from ..integer_types import I32
from ..layout import BLOCKED, HALVED, MAJORS, SCALE_ATOM_ROWS, SHIFTED
from ..mlir import ext, ir
from ..tile_types import SmemType
from ..verify import logical_shape, refuse, verify_epilogue, verify_smem
from .blockwise import BLOCKWISE_MMAS
from .duals import DUAL_MMAS
from .level import LevelMmaOp
from .program import MatmulOp, MmaOp, PairMmaOp
from .short import SHORT_MMAS
from .weights import ExchangedWeightMmaOp, WeightMmaOp


class ScaledMatmulOp(MatmulOp, name="scaled_matmul"):
    """`c[M,N] = f(sum_k a[M,k] * a_scales[M,k/B] * b[N,k] * b_scales[N,k/B])`, B the `block`.

    Like `tile.matmul`, also of stacks. Scales are blocked or linear tensors of f8E8M0FNU, or of
    f8E4M3FN, whose sign nobody reads. A factor of a whole operand belongs in the epilogue. An
    attribute `kind` may name the kind of MMA, where several take the operands.
    """

    a_scales: ext.Operand[ir.RankedTensorType]
    b_scales: ext.Operand[ir.RankedTensorType]
    block: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        majors = (self.a_major.value, self.b_major.value)
        if any(major not in MAJORS for major in majors):
            return refuse(self, f"a_major and b_major must be 'k' or 'mn', got {majors}")
        if not self._verify_extents():
            return False
        if self.mma is None:
            operands: list[Any] = list(self.operation.operands)
            types = [str(each.type.element_type) for each in operands]
            by_kind = f" in kind {self.kind}" if self.kind else ""
            got = f"{types[0]} and {types[1]} with {types[2]} by {self.block.value}{by_kind}"
            return refuse(self, f"no MMA takes such operands and scales, got {got}")
        (m, k), (n, _) = (logical_shape(each.type, major.value) for each, major in self.sides)
        if not self._verify_scales("a", m, k) or not self._verify_scales("b", n, k):
            return False
        sums = ir.F32Type.get()
        return verify_epilogue(self, self.epilogue, sums, self.c.type.element_type, (1,))

    @property
    def sides(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """A and B, each with its major."""
        return (self.a, self.a_major), (self.b, self.b_major)

    @property
    def kind(self) -> str | None:
        """The kind of MMA that is asked for; None for the quickest that takes the operands."""
        attributes = self.operation.attributes
        if KIND not in attributes:
            return None
        asked = attributes[KIND]
        return asked.value if isinstance(asked, ir.StringAttr) else str(asked)

    @property
    def mma(self) -> ScaledMma | None:
        """The MMA that multiplies them; None where there is none."""
        return self.mma_of_kind(self.kind)

    def mma_of_kind(self, kind: str | None) -> ScaledMma | None:
        """The MMA of a kind that multiplies them, or the quickest; None where there is none."""
        a, b = (scaled_dtype(str(each.type.element_type)) for each in (self.a, self.b))
        types = {str(each.type.element_type) for each in (self.a_scales, self.b_scales)}
        scale = scale_dtype(types.pop()) if len(types) == 1 else None
        if a is None or b is None or scale is None:
            return None
        return scaled_mma(a, b, scale, self.block.value, kind)

    def _verify_scales(self, name: str, rows: int, k: int) -> bool:
        block, got = self.block.value, list(getattr(self, f"{name}_scales").type.shape)
        if k % block:
            rule = f"K must be a multiple of the {block} elements that share a scale"
            return refuse(self, f"{rule}, got {k}; pad K")
        stored, major = getattr(self, name).type, getattr(self, f"{name}_major").value
        dtype = scaled_dtype(str(stored.element_type))
        if dtype is not None and dtype.bits < 8 and major != "k":
            rule = f"{name}_major must be 'k' for {stored.element_type}, whose elements share bytes"
            return refuse(self, f"{rule}, got {major!r}; transpose it before the kernel")
        stack = list(stored.shape)[:-2]
        scale = scale_dtype(str(getattr(self, f"{name}_scales").type.element_type))
        if scale is not None and (scale.name, block) == ("ue8m0", 16) and len(got) >= 5:
            rule = f"{name}_scales of f8E8M0FNU by 16 must be linear, {[rows, k // block]}"
            return refuse(self, f"{rule}, got {got}; take them row by row")
        if got[: len(stack)] != stack:
            rule = f"{name}_scales must be a stack of {stack[0]}, as {name}, got {got}"
            return refuse(self, rule)
        broken = scales_refusal(got[len(stack) :], rows, k // block, block)
        return broken is None or refuse(self, f"{name}_scales {broken}")


class ScaledMmaOp(MmaOp, name="scaled_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + (a * a_scales)[M,K] * (b * b_scales)[N,K]^T`.

    `a_scales` are those of this CTA's M rows, `b_scales` those of all N columns. If a tile of N
    columns begins within an atom, at column `j` * N of b, its scales begin there too. The tile is
    the `k`-th along K; elements from `extent` on are left out, since they have no scales. `a_type`
    and `b_type` are the element types that the MMA of `kind` reads from the tiles, which for packed
    types are tiles of bytes. Once pipes are lowered to barriers, `place` says to which place of
    `sm.scale_columns` the scales go.
    """

    a_scales: ext.Operand[SmemType]
    b_scales: ext.Operand[SmemType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    kind: ir.StringAttr
    block: ir.IntegerAttr
    extent: ir.IntegerAttr
    place: ext.Operand[I32] | None = None

    def verify_invariants(self) -> bool:
        return MmaOp.verify_invariants(self) and _verify_scales(self)


class ScaledPairMmaOp(PairMmaOp, name="scaled_pair_mma"):
    """Like `tile.scaled_mma`, by a pair of CTAs, as `tile.pair_mma`.

    `a_scales` are those of this CTA's M rows; both CTAs have the `b_scales` of all N columns.
    """

    a_scales: ext.Operand[SmemType]
    b_scales: ext.Operand[SmemType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    kind: ir.StringAttr
    block: ir.IntegerAttr
    extent: ir.IntegerAttr
    place: ext.Operand[I32] | None = None

    def verify_invariants(self) -> bool:
        return PairMmaOp.verify_invariants(self) and _verify_scales(self)


KIND = "kind"
SCALED_MMAS = (ScaledMmaOp, ScaledPairMmaOp)
ALL_MMAS = (
    MmaOp, PairMmaOp, *SCALED_MMAS, *DUAL_MMAS, *BLOCKWISE_MMAS, *SHORT_MMAS, WeightMmaOp,
    ExchangedWeightMmaOp, LevelMmaOp,
)  # fmt: skip
OF_SCALES = ("a_scales", "b_scales", "j", "k", "a_type", "b_type", "kind", "block", "extent")


def mma_of(op: Any) -> ScaledMma:
    """The kind of MMA that an op of `SCALED_MMAS` is; its verifier knows that there is one."""
    found = _mma_or_none(op)
    assert found is not None
    return found


def of_scales(op: Any) -> dict[str, Any]:
    """What an op of `SCALED_MMAS` has beside other MMAs' operands, as another such op takes it."""
    return {name: getattr(op, name) for name in OF_SCALES}


def depth_of(op: Any) -> int:
    """The K of its tiles in elements."""
    return op.a_scales.type.layout.k * op.block.value


def smem_operands(op: Any) -> list[ir.Value[SmemType]]:
    """The tiles in shared memory that an MMA reads: A and B, then their scales or the second B, if
    it has some."""
    scales = [op.a_scales, op.b_scales] if isinstance(op, SCALED_MMAS) else []
    scales = op.vectors if isinstance(op, BLOCKWISE_MMAS) else scales
    return [op.a, op.b, *scales, *([op.b2] if isinstance(op, DUAL_MMAS) else [])]


def _mma_or_none(op: Any) -> ScaledMma | None:
    scale = scale_dtype(str(op.a_scales.type.element))
    names = (op.a_type.value, op.b_type.value)
    if scale is None or any(name not in SCALED_DTYPES for name in names):
        return None
    a, b = (DTYPES[name] for name in names)
    return scaled_mma(a, b, scale, op.block.value, op.kind.value)


def _verify_scales(op: Any) -> bool:
    """What the scales of tiles must be."""
    scales = (op.a_scales, op.b_scales)
    if not all(verify_smem(op, each.type) for each in scales):
        return False
    layouts = [each.type.layout for each in scales]
    pair = op.operation.name == ScaledPairMmaOp.OPERATION_NAME
    halves = pair and op.acc.type.shape[0] % SCALE_ATOM_ROWS
    for layout, form in zip(layouts, (SHIFTED, HALVED) if halves else (BLOCKED,) * 2, strict=True):
        if layout.swizzle != form:
            return refuse(op, f"scales must be {form!r}, got {layout.swizzle!r}")
    elements = [str(each.type.element) for each in scales]
    mma = _mma_or_none(op)
    if mma is None or elements[0] != elements[1]:
        got = f"{op.a_type.value} and {op.b_type.value} with {', '.join(elements)}"
        by = f"by {op.block.value} in kind {op.kind.value}"
        return refuse(op, f"no MMA takes such tiles, got {got} {by}")
    wanted = [(extent, layouts[0].k) for extent in op.acc.type.shape]
    got = [(layout.mn, layout.k) for layout in layouts]
    if got != wanted:
        return refuse(op, f"scales must be of {wanted} rows and blocks, got {got}")
    k_bytes = mma.operand_bytes(depth_of(op))
    if depth_of(op) % mma.k or op.a.type.layout.k != k_bytes:
        got_bytes = op.a.type.layout.k
        return refuse(op, f"tiles must be {k_bytes} bytes along K, got {got_bytes}")
    extent = op.extent.value
    return extent > 0 or refuse(op, f"extent must be at least 1, got {extent}")

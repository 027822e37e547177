"""Narrow weights (8-bit or 4-bit), which threads convert before the MMA.

    tile.weight_matmul  c[M,N] = f(sum_g s[N,g] * sum_k a[M,k] * (b[N,k] - z[N,g])), k of group g
    tile.weight_mma     acc[M,N] = (accumulate ? acc : 0) + the same of tiles
    tile.exchanged_weight_mma  acc[N,M] = (accumulate ? acc : 0) + the same, with weights for its A

No MMA takes two such types. Threads load fragments of weights as they lie in shared memory, and
widen them in registers to the other type, which holds every value of theirs. The tensor core sums
the products of a group apart, from zero; threads multiply that by the scale of the group, and add
it to the sums in f32. So nothing is rounded but sums and their products with scales.

mma.sync takes its B from registers, wgmma its A, and tcgen05.mma its A from tensor memory, where
threads write it. So for the last two weights are A: A and B of the product are exchanged.

Elements of four bits lie two to a byte along K, the first in the low bits.
"""

from typing import Any

from ..dtypes import DTYPES, WEIGHT_SCALES, WIDE_DTYPES, group_refusal, stored_dtype, weight_dtype
from ..mlir import ext, ir
from ..tile_types import SmemType
from ..verify import logical_shape, refuse, verify_epilogue, verify_smem
from .program import MatmulOp, MmaOp

SCALES, ZEROS = "scales", "zeros"
ZERO_DTYPE = "u8"


class WeightMatmulOp(MatmulOp, name="weight_matmul"):
    """`c[M,N] = f(sum_g scales[N,g] * sum_k a[M,k] * (b[N,k] - zeros[N,g]))`, k of group g.

    Like `tile.matmul` of matrices with K contiguous. `a` is bf16 or f16; `b` holds i8, f8E4M3FN,
    f8E5M2, i4 or ui4. `scales`, of bf16, f16 or f32, are one per `group` elements of K: 32, 64, 128
    or all. Without scales `group` is 0. `zeros`, ui8 from 0 to 15, are optional with scales of ui4.
    """

    group: ir.IntegerAttr
    scales: ext.Operand[ir.RankedTensorType] | None = None
    zeros: ext.Operand[ir.RankedTensorType] | None = None

    def verify_invariants(self) -> bool:
        if (self.a_major.value, self.b_major.value) != ("k", "k"):
            got = (self.a_major.value, self.b_major.value)
            return refuse(self, f"a_major and b_major must be 'k', got {got}")
        if self.a.type.rank != 2 or self.b.type.rank != 2:
            return refuse(self, f"a and b must be matrices, got {self.a.type} and {self.b.type}")
        (m, k), (n, b_k) = (logical_shape(each.type, "k") for each in (self.a, self.b))
        if k != b_k:
            return refuse(self, f"a and b must have the same K, got {k} and {b_k}")
        if list(self.c.type.shape) != [m, n]:
            return refuse(self, f"c must be {m}x{n}, got {list(self.c.type.shape)}")
        return self._verify_types(k) and self._verify_scales(n, k)

    def _verify_types(self, k: int) -> bool:
        wide, narrow = self.a.type.element_type, self.b.type.element_type
        weight = weight_dtype(str(narrow))
        if str(wide) not in [DTYPES[name].mlir for name in WIDE_DTYPES] or weight is None:
            rule = "a must hold bf16 or f16, and b what threads widen to it"
            return refuse(self, f"{rule}, got {wide} and {narrow}")
        if k * weight.bits % 8:
            return refuse(self, f"K must be whole bytes of {narrow}, got {k}; pad K")
        sums = ir.F32Type.get()
        return verify_epilogue(self, self.epilogue, sums, self.c.type.element_type, (1,))

    def _verify_scales(self, n: int, k: int) -> bool:
        group = self.group.value
        broken = group_refusal(k, group, self.scales is not None)
        if broken:
            return refuse(self, f"group {broken}")
        if self.scales is None:
            return self.zeros is None or refuse(self, "zeros must come with scales, got none")
        type_, wanted = self.scales.type, [n, k // group]
        dtype = stored_dtype(str(type_.element_type))
        if list(type_.shape) != wanted or dtype is None or dtype.name not in WEIGHT_SCALES:
            shown = "x".join(map(str, wanted))
            kinds = ", ".join(WEIGHT_SCALES)
            return refuse(self, f"scales must be {shown} of {kinds}, got {type_}")
        return self.zeros is None or self._verify_zeros(wanted)

    def _verify_zeros(self, wanted: list[int]) -> bool:
        type_: Any = self.zeros.type  # pyright: ignore[reportOptionalMemberAccess]
        if str(self.b.type.element_type) != DTYPES["u4"].mlir:
            return refuse(self, f"zeros must come with weights of ui4, got {self.b.type}")
        if list(type_.shape) != wanted or str(type_.element_type) != DTYPES[ZERO_DTYPE].mlir:
            shown = "x".join(map(str, wanted))
            return refuse(self, f"zeros must be tensor<{shown}xui8>, as scales, got {type_}")
        return True


class WeightMmaOp(MmaOp, name="weight_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + sum_g scales[N,g] * sum_k a[M,k] * (b[N,k] - z[N,g])`.

    The tiles are the `j`-th of B and the `k`-th along K. `b_type` is the element type in the tile
    of B, which for four bits is a tile of bytes. Threads read scales and zero points from the
    views; elements after the last group are zero in A.
    """

    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    b_type: ir.StringAttr
    group: ir.IntegerAttr
    scales: ext.Operand[ir.MemRefType] | None = None
    zeros: ext.Operand[ir.MemRefType] | None = None

    @property
    def sides(self) -> tuple[tuple[str, SmemType], tuple[str, SmemType]]:
        """The tiles of weights and of what they are multiplied with, by name."""
        return ("b", self.b.type), ("a", self.a.type)

    @property
    def depth(self) -> int:
        """Elements along K of the tiles."""
        return self.sides[1][1].layout.k

    def verify_invariants(self) -> bool:
        if not all(verify_smem(self, operand.type) for operand in (self.a, self.b)):
            return False
        a, b = self.a.type.layout, self.b.type.layout
        (name, weights), (other_name, other) = self.sides
        wanted = weight_tile(self.b_type.value)
        if wanted is None or str(weights.element) != wanted[0]:
            got = f"{self.b_type.value} in a tile of {weights.element}"
            rule = f"{name} must hold the bytes of weights that threads widen"
            return refuse(self, f"{rule}, got {got}")
        depths = {name: weights.layout.k * wanted[1], other_name: other.layout.k}
        if depths["a"] != depths["b"]:
            return refuse(
                self, f"a and b must have the same K, got {depths['a']} and {depths['b']}"
            )
        if self.acc.type.shape != (a.mn, b.mn):
            return refuse(self, f"acc must be {(a.mn, b.mn)}, got {self.acc.type.shape}")
        if (a.major, b.major) != ("k", "k"):
            return refuse(self, f"a and b must be 'k', got {(a.major, b.major)}")
        if (self.scales is None) != (self.group.value == 0):
            return refuse(self, f"group must be 0 without scales alone, got {self.group.value}")
        if self.zeros is not None and (self.scales is None or self.b_type.value != "u4"):
            return refuse(self, f"zeros must come with scales of u4, got {self.b_type.value}")
        return True


class ExchangedWeightMmaOp(WeightMmaOp, name="exchanged_weight_mma"):
    """`acc[N,M] = (accumulate ? acc : 0) + sum_g scales[N,g] * sum_k (a[n,k] - z[N,g]) * b[m,k]`.

    Like `tile.weight_mma` with A and B of the product exchanged: `a` is the `j`-th tile of weights,
    of `b_type`, and `b` is the tile of activations.
    """

    @property
    def sides(self) -> tuple[tuple[str, SmemType], tuple[str, SmemType]]:
        return ("a", self.a.type), ("b", self.b.type)


def weight_tile(name: str) -> tuple[str, int] | None:
    """(MLIR type of a tile's elements, how many weights one of them holds); None of others."""
    dtype = weight_dtype(DTYPES[name].mlir) if name in DTYPES else None
    if dtype is None:
        return None
    return (DTYPES["u8"].mlir, 2) if dtype.bits == 4 else (dtype.mlir, 1)


def scale_views(op: Any) -> dict[str, ir.Value]:
    """What a product of weights or its MMA takes beside A and B, by the arguments' names."""
    found = {SCALES: op.scales, ZEROS: op.zeros}
    return {name: value for name, value in found.items() if value is not None}

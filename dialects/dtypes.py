"""The compiler's view of the table of element types (`runtime/element_types.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..runtime.element_types import (
    BLOCKWISE,
    BLOCKWISE_FORMS,
    COARSE_FORMATS,
    DTYPES,
    FMA,
    GROUP_SIZES,
    OPERAND_FORMATS,
    PADDED_ALIGNMENT_BYTES,
    PADDED_ROW,
    PADDED_TYPES,
    SCALE_ATOM_BLOCKS,
    SCALE_ATOM_ROWS,
    SCALE_DTYPES,
    SCALE_ROUNDINGS,
    SCALED_FORMATS,
    SPLITS,
    WEIGHT_DTYPES,
    WIDE_DTYPES,
    DType,
    ScaledFormat,
    blocked_scale_shape,
    blockwise_scale_shape,
)

__all__ = [
    "BLOCKWISE",
    "BLOCKWISE_FORMS",
    "COARSE_FORMATS",
    "DTYPES",
    "FMA",
    "GROUP_SIZES",
    "OPERAND_FORMATS",
    "PADDED_ALIGNMENT_BYTES",
    "PADDED_ROW",
    "PADDED_TYPES",
    "SCALED_FORMATS",
    "SCALE_ATOM_BLOCKS",
    "SCALE_ATOM_ROWS",
    "SCALE_DTYPES",
    "SCALE_ROUNDINGS",
    "SPLITS",
    "WEIGHT_DTYPES",
    "WIDE_DTYPES",
    "DType",
    "ScaledFormat",
    "blocked_scale_shape",
    "blockwise_scale_shape",
]

OPERAND_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.operand_kind)
TENSOR_DTYPES = tuple(
    name for name in OPERAND_DTYPES if DTYPES[name].operand_kind not in (FMA, *SPLITS)
)
SPLIT_MMAS = {name: f"mma.sync+{name}" for name in SPLITS}
"""The MMA of each type of f32 that warps split, on every chip."""
TILE_SPLITS = {
    "tcgen05.mma+bf16x9": "bf16x9",
    "tcgen05.mma+3xtf32": "3xtf32",
    "wgmma.mma_async+bf16x9": "bf16x9",
}
"""The MMAs for which threads split whole tiles, and the type that each multiplies."""
_SPLIT_BY = {mma: name for name, mma in SPLIT_MMAS.items()} | TILE_SPLITS
THREAD_DTYPES = ("f16", "bf16", "f32", "f64")  # PTX ISA, fma; the first two are widened to f32
BESIDE_DTYPES = ("bf16", "f16", "f32", "s32", "f64")  # that an epilogue reads
NARROW_DTYPES = ("e4m3", "e5m2")  # PTX ISA, cvt to .e4m3x2 and .e5m2x2
OUTPUT_DTYPES = (*BESIDE_DTYPES, *NARROW_DTYPES)
ACCUMULATOR_DTYPES = ("f32", "s32", "f64")
MIXED_KINDS = ("f8f6f4", "i8")
WEIGHT_SCALES = ("bf16", "f16", "f32")  # of groups of weights
_WEIGHTS = {DTYPES[name].mlir: DTYPES[name] for name in WEIGHT_DTYPES}
_BY_TENSOR_CORE = {DTYPES[name].mlir: DTYPES[name] for name in TENSOR_DTYPES}
_BY_THREADS = {DTYPES[name].mlir: DTYPES[name] for name in THREAD_DTYPES}
_OPERANDS = {**_BY_THREADS, **_BY_TENSOR_CORE}
_BY_SPLITTING = {mma: {DTYPES[name].mlir: DTYPES[name]} for mma, name in _SPLIT_BY.items()}
_LIKE_OTHERS = ("tf32", *SPLITS, "ue4m3")  # in memory f32 and e4m3
_STORED = {dtype.mlir: dtype for name, dtype in DTYPES.items() if name not in _LIKE_OTHERS}


def operand_dtype(mlir: str, mma: str = "") -> DType | None:
    """What the MMA of that name makes of an operand of this MLIR type, None if it takes none such.

    Threads multiply f32 as it is, a tensor core as tf32, or as one of `SPLITS`. Without
    a name it is what some MMA makes of it, the tensor core's first.
    """
    if not mma:
        return _OPERANDS.get(mlir)
    special = {FMA: _BY_THREADS, **_BY_SPLITTING}
    return special.get(mma, _BY_TENSOR_CORE).get(mlir)


def mma_unit_of(dtype: DType) -> str | None:
    """The MMA that alone multiplies operands of a type as they are meant; None where it is the
    chip's own."""
    return {FMA: FMA, **SPLIT_MMAS}.get(dtype.operand_kind or "")


def split_by(mma: str) -> str | None:
    """The type of f32 that an MMA splits, by its name; None where it splits none."""
    return _SPLIT_BY.get(mma)


def stored_dtype(mlir: str) -> DType | None:
    """The type of a tensor's elements in memory, by its MLIR type."""
    return _STORED.get(mlir)


def mix_refusal(a: DType, b: DType) -> str | None:
    """Why no MMA takes A and B of these types together (PTX ISA, tcgen05.mma and wgmma kinds)."""
    if a == b or a.operand_kind == b.operand_kind in MIXED_KINDS:
        return None
    mixes = " (8 bits: both floats or both integers)" if 1 in (a.bytes, b.bytes) else ""
    return f"must be one type{mixes}, got {a.name} and {b.name}; convert one of them"


def weight_dtype(mlir: str) -> DType | None:
    """The type of weights that threads widen, by its MLIR type; None where they widen none such."""
    return _WEIGHTS.get(mlir)


def group_refusal(k: int, group: int, has_scales: bool) -> str | None:
    """Why weights of `k` columns have no scales of such groups; 0 is that of no scales."""
    if not has_scales:
        return None if group == 0 else f"must be 0 without scales, got {group}"
    if group != k and group not in GROUP_SIZES:
        return f"must be {', '.join(map(str, GROUP_SIZES))} or all {k} of K, got {group}"
    return None if k % group == 0 else f"must divide K, got {group} and K of {k}; pad K"


TENSOR_BYTES_MAX = 2**47  # of the user addresses of x86-64 and AArch64 hosts


def size_refusal(shape: Sequence[int], element_bytes: int) -> str | None:
    """Why no process can hold a tensor: offsets have 64 bits, addresses fewer."""
    size = math.prod(shape) * element_bytes
    if size <= TENSOR_BYTES_MAX:
        return None
    extents = "×".join(map(str, shape))
    return f"must have at most {TENSOR_BYTES_MAX} bytes, got {size} for {extents}"


def output_refusal(accumulator: str, c: str) -> str | None:
    """Why sums of type `accumulator` are not stored as `c` by themselves."""
    if accumulator == "f64":
        return None if c == "f64" else f"must be f64 for sums in f64, got {c}"
    if c == "f64" or (c == "s32" and accumulator != "s32"):
        taken = "bf16, f16, f32, e4m3, e5m2" + (", s32" if accumulator == "s32" else "")
        return f"must be one of {taken} for sums in {accumulator}, got {c}"
    return None


class ScaledMma(NamedTuple):
    """A kind of tcgen05.mma with block scales (PTX ISA, tcgen05.mma, block scaling).

    One MMA takes `k` elements along K, of which each `block` share a scale of type `scale`. With
    `packed` operands two elements lie in a byte of shared memory, else one; `scale_code` is the
    scales' type in the instruction descriptor.
    """

    kind: str
    k: int
    block: int
    scale: str
    packed: bool

    @property
    def blocks(self) -> int:
        """Scales of a row that one MMA reads."""
        return self.k // self.block

    @property
    def scale_code(self) -> int:
        return int(self.scale == "ue8m0")

    @property
    def unit(self) -> int:
        """The K of whole MMAs whose scales are whole atoms, in elements."""
        return math.lcm(self.k, 4 * self.block)

    def operand_code(self, dtype: DType) -> int:
        """An operand's type in the instruction descriptor; of the packed kinds there is one."""
        return 1 if self.packed else dtype.operand_code

    def operand_bytes(self, k: int) -> int:
        """Bytes of `k` elements along K in shared memory."""
        return k // 2 if self.packed else k


_MX8, _MX4 = ScaledMma("mxf8f6f4", 32, 32, "ue8m0", False), ScaledMma("mxf4", 64, 32, "ue8m0", True)
_NV4 = ScaledMma("mxf4nvf4", 64, 16, "ue4m3", True)
_MX4_AS_NV4 = ScaledMma("mxf4nvf4", 64, 32, "ue8m0", True)
_MX4_BY_16 = ScaledMma("mxf4nvf4", 64, 16, "ue8m0", True)
SCALED_MMAS = (_MX4, _NV4, _MX4_AS_NV4, _MX4_BY_16, _MX8)
"""The quickest first; where several take the same operands, the first is the one that is chosen."""
SCALED_KINDS = tuple(dict.fromkeys(each.kind for each in SCALED_MMAS))
SCALED_DTYPES = tuple(dict.fromkeys(each.element for each in SCALED_FORMATS.values()))
_SCALED = {DTYPES[name].mlir: DTYPES[name] for name in SCALED_DTYPES}
_SCALES = {DTYPES[name].mlir: DTYPES[name] for name in SCALE_DTYPES}


def scaled_dtype(mlir: str) -> DType | None:
    """What a block-scaled MMA makes of an operand of this MLIR type, None if it takes none such."""
    return _SCALED.get(mlir)


def scale_dtype(mlir: str) -> DType | None:
    """The type of scales by its MLIR type."""
    return _SCALES.get(mlir)


def scales_refusal(shape: Sequence[int], rows: int, blocks: int, block: int) -> str | None:
    """Why an array holds no scales of so many rows and blocks, and which layout it comes near."""
    linear, blocked, got = [rows, blocks], [*blocked_scale_shape(rows, blocks)], list(shape)
    if got == blocked or linear_sharing(got, rows, blocks, block) is not None:
        return None
    rule = f"must be blocked, {blocked}, or linear, {linear}, for {rows} rows of {blocks} blocks"
    known = layout_of(got, rows, blocks)
    return f"{rule}, got {known}, {got}; use tilewright.scales.to_blocked"


def linear_sharing(
    shape: Sequence[int], rows: int, blocks: int, block: int
) -> tuple[int, int] | None:
    """How many rows and blocks share each of the linear scales of an array, None if it has others.

    One scale for several blocks is of `OPERAND_FORMATS`; the shape alone tells it, since whole
    blocks of 128 elements are never one block of 32.
    """
    known = {(1, 1), *((each.rows, each.blocks) for each in _coarse(block))}
    for of_rows, of_blocks in sorted(known):
        whole = blocks % of_blocks == 0
        if whole and list(shape) == [-(-rows // of_rows), blocks // of_blocks]:
            return of_rows, of_blocks
    return None


def _coarse(block: int) -> list[ScaledFormat]:
    return [each for each in OPERAND_FORMATS.values() if each.is_coarse and each.block == block]


def blocks_refusal(
    name: str, shape: Sequence[int], rows: int, blocks: int, swizzled: bool
) -> str | None:
    """Why torch's scales of an operand are not those of so many rows and blocks; `swizzled` ones
    have as many elements as atoms have, others the shape of linear ones."""
    count = math.prod(blocked_scale_shape(rows, blocks))
    if math.prod(shape) == count if swizzled else list(shape) == [rows, blocks]:
        return None
    wanted = f"{count} elements, blocked" if swizzled else f"{[rows, blocks]}, linear"
    rule = f"scale_{name} must be {wanted}, by swizzle_{name}, for {rows} rows of {blocks} blocks"
    known = layout_of(list(shape), rows, blocks)
    return f"{rule}, got {known}, {list(shape)}; use tilewright.scales.to_blocked"


def layout_of(shape: list[int], rows: int, blocks: int) -> str:
    """What an array of that shape looks like, for errors."""
    blocked, count = [*blocked_scale_shape(rows, blocks)], math.prod(shape)
    shapes = {
        "linear ones": [rows, blocks],
        "padded ones": [blocked[0] * SCALE_ATOM_ROWS, blocked[1] * SCALE_ATOM_BLOCKS],
        "blocked ones": blocked,
    }
    same = [name for name, known in shapes.items() if known == shape]
    alike = [f"as many as {name}" for name, known in shapes.items() if math.prod(known) == count]
    return (*same, *alike, "others")[0]


def scaled_mma(
    a: DType, b: DType, scale: DType, block: int, kind: str | None = None
) -> ScaledMma | None:
    """The MMA that multiplies A and B of these types with such scales, None if there is none.

    Two operands of four bits take the kinds of twice the speed, unless `kind` names another one
    (PTX ISA, tcgen05.mma, kinds: mxf8f6f4 takes any two types, mxf4nvf4 the scales of mxf4, too).
    """
    both_packed = a.name == b.name == "e2m1"
    return next(
        (
            mma
            for mma in SCALED_MMAS
            if (mma.scale, mma.block) == (scale.name, block)
            and (both_packed or not mma.packed)
            and kind in (None, mma.kind)
        ),
        None,
    )


def scaled_mma_of_kind(kind: str, block: int, scale: str) -> ScaledMma | None:
    """The MMA of a kind with a scale of a type for each `block` elements, None if there is none."""
    wanted = kind, block, scale
    return next((mma for mma in SCALED_MMAS if (mma.kind, mma.block, mma.scale) == wanted), None)


def scaled_mix_refusal(a: str, b: str) -> str | None:
    """Why no MMA takes A and B of two formats together (PTX ISA, tcgen05.mma, kinds)."""
    one, other = OPERAND_FORMATS.get(a), OPERAND_FORMATS.get(b)
    if one is None or other is None:
        return f"must both have block scales, or none, got {a} and {b}"
    if (one.scale, one.block) != (other.scale, other.block):
        return f"must have scales of one type, one for as many elements, got {a} and {b}"
    return None

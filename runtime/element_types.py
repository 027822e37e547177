"""The element types of matmuls, as one table for the compiler and the runtime; needs no numpy.

A row is all that a type needs: add one to support another (CONTRIBUTING, "A type").
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DType:
    """One element type; `name` is that of the PTX ISA, `mlir` how MLIR prints it.

    `bytes` is its size in memory; an element of `packed_bits` lies packed along K, the first in the
    lowest bits, and an array of such is one of bytes. `numpy` and `torch` are what these call it,
    numpy by several names where arrays of bits stand for what it lacks. `operand_kind` is the
    tcgen05.mma kind that takes it as A or B, `fma` where only threads multiply it, one of `SPLITS`
    where warps split it (None: no operand by itself), and `operand_code` its code in that kind's
    instruction descriptor (PTX ISA, tcgen05 instruction descriptor). `k_per_mma` is the K extent of
    one MMA in elements, `accumulator` the type of its sums. `result` is C's type where none is
    asked for.

    s4 and u4 are the weights of a product whose threads widen them (`WEIGHT_DTYPES`).
    e2m1, e2m3 and e3m2 are operands where scales go with them alone (`SCALED_FORMATS`), and ue8m0
    and ue4m3 are those scales: a power of two, and an e4m3 without sign.

    tf32 is f32 in memory, of which the tensor core ignores the low 13 bits; an operand of f32 has
    all of them, and so has one of f64. 3xtf32 and bf16x9 are f32 in memory, too: a tensor core
    multiplies the two tf32 that make up nearly all of it, or the three bf16 that make up all.
    """

    name: str
    mlir: str
    bytes: int
    numpy: tuple[str, ...]
    torch: str
    operand_kind: str | None = None
    operand_code: int = 0
    k_per_mma: int = 0
    accumulator: str = "f32"
    result: str = ""
    packed_bits: int = 0

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return self.packed_bits or 8 * self.bytes

    @property
    def accumulator_bytes(self) -> int:
        """Bytes of one sum."""
        return 8 if self.accumulator == "f64" else 4

    @property
    def is_integer(self) -> bool:
        """Whether its sums are exact."""
        return self.name[0] in "su" and self.name[1:].isdigit()


FMA = "fma"
SPLITS = ("3xtf32", "bf16x9")
"""f32 whose parts a tensor core multiplies."""
_BITS = ("bfloat16", "uint16", "int16")
_E4M3, _E5M2 = "float8_e4m3fn", "float8_e5m2"
_E2M1, _E8M0, _BYTES = "float4_e2m1fn_x2", "float8_e8m0fnu", "uint8"
DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f16", "f16", 2, ("float16",), "float16", "f16", 0, 16, result="f16"),
        DType("bf16", "bf16", 2, _BITS, "bfloat16", "f16", 1, 16, result="bf16"),
        DType("tf32", "f32", 4, ("float32",), "float32", "tf32", 2, 8, result="f32"),
        DType("e4m3", "f8E4M3FN", 1, (_E4M3,), _E4M3, "f8f6f4", 0, 32, result="bf16"),
        DType("e5m2", "f8E5M2", 1, (_E5M2,), _E5M2, "f8f6f4", 1, 32, result="bf16"),
        DType("s8", "i8", 1, ("int8",), "int8", "i8", 1, 32, "s32", "s32"),
        DType("u8", "ui8", 1, ("uint8",), "uint8", "i8", 0, 32, "s32", "s32"),
        DType("f32", "f32", 4, ("float32",), "float32", FMA, 0, 1, result="f32"),
        DType("f64", "f64", 8, ("float64",), "float64", FMA, 0, 1, "f64", "f64"),
        DType("3xtf32", "f32", 4, ("float32",), "float32", "3xtf32", 2, 8, result="f32"),
        DType("bf16x9", "f32", 4, ("float32",), "float32", "bf16x9", 1, 16, result="f32"),
        DType("s32", "i32", 4, ("int32",), "int32"),
        DType("s4", "i4", 1, (_BYTES,), _BYTES, packed_bits=4),
        DType("u4", "ui4", 1, (_BYTES,), _BYTES, packed_bits=4),
        DType("e2m3", "f6E2M3FN", 1, (_BYTES,), _BYTES, None, 3, 32, result="bf16", packed_bits=6),
        DType("e3m2", "f6E3M2FN", 1, (_BYTES,), _BYTES, None, 4, 32, result="bf16", packed_bits=6),
        DType("e2m1", "f4E2M1FN", 1, (_BYTES,), _E2M1, None, 5, 32, result="bf16", packed_bits=4),
        DType("ue8m0", "f8E8M0FNU", 1, (_E8M0, _BYTES), _E8M0),
        DType("ue4m3", "f8E4M3FN", 1, (_E4M3, _BYTES), _E4M3),
    )
}


@dataclass(frozen=True)
class ScaledFormat:
    """Elements of which `block` neighbours along K share a scale: values are element times scale.

    `element` and `scale` are names of `DTYPES` (OCP Microscaling Formats 1.0; nvfp4: PTX ISA,
    tcgen05.mma, block scaling). Where a scale is for several of the MMA's blocks, `blocks` of each
    of `rows` rows share one. Some formats have scales that are always `linear`.
    """

    name: str
    element: str
    scale: str
    block: int
    rows: int = 1
    blocks: int = 1
    linear: bool = False

    @property
    def depth(self) -> int:
        """The elements along K that share a scale."""
        return self.block * self.blocks

    @property
    def is_coarse(self) -> bool:
        """Whether a scale is for several blocks of the MMA."""
        return self.blocks > 1


SCALED_FORMATS = {
    each.name: each
    for each in (
        ScaledFormat("mxfp8", "e4m3", "ue8m0", 32),
        ScaledFormat("mxfp8_e5m2", "e5m2", "ue8m0", 32),
        ScaledFormat("mxfp6", "e2m3", "ue8m0", 32),
        ScaledFormat("mxfp6_e3m2", "e3m2", "ue8m0", 32),
        ScaledFormat("mxfp4", "e2m1", "ue8m0", 32),
        ScaledFormat("nvfp4", "e2m1", "ue4m3", 16),
    )
}
COARSE_FORMATS = {
    each.name: each
    for each in (
        ScaledFormat("mxfp8_1x128", "e4m3", "ue8m0", 32, 1, 4, True),
        ScaledFormat("mxfp8_128x128", "e4m3", "ue8m0", 32, 128, 4, True),
    )
}
"""Powers of two for 128 elements of K, of one row or of 128 (torch, ScalingType.BlockWise1x128 and
BlockWise128x128, whose scales are f32)."""
_BY_16 = ScaledFormat("mxfp4_1x16", "e2m1", "ue8m0", 16, linear=True)
OPERAND_FORMATS = {**SCALED_FORMATS, **COARSE_FORMATS, _BY_16.name: _BY_16}
"""The formats of A and B; C is of `SCALED_FORMATS` alone."""
SCALE_ROUNDINGS = {"ue8m0": ("floor", "ceil", "even", "rceil"), "ue4m3": ("nearest", "normal")}
"""Ways to round a scale, by its type, which `runtime.scales.quantize` explains; the first is the
default."""
# Tensor maps of packed elements that lie 16 to 16 bytes in shared memory, with gaps (PTX ISA,
# tensor types): bits of an element.
PADDED_TYPES = {"b4x16_p64": 4, "b6x16_p32": 6}
PADDED_ROW, PADDED_ALIGNMENT_BYTES = 128, 32
"""Elements of which such a map has whole multiples along its first dim, and a box has so many; and
what its address and strides are multiples of (cuTensorMapEncodeTiled)."""
SCALE_DTYPES = ("ue8m0", "ue4m3")
WEIGHT_DTYPES = ("s8", "e4m3", "e5m2", "s4", "u4")
"""Elements of B that threads widen to those of A, one of `WIDE_DTYPES`."""
WIDE_DTYPES = ("bf16", "f16")
GROUP_SIZES = (32, 64, 128)
"""Elements of K that share a scale of weights, where not all of them do."""
# One atom of the blocked layout of scales: 128 rows by 4 blocks along K, 512 bytes (cuBLAS, "block
# scaling factors layout"; torch, SwizzleType.SWIZZLE_32_4_4).
SCALE_ATOM_ROWS, SCALE_ATOM_BLOCKS = 128, 4


BLOCKWISE = 128
"""Elements of K that share a scale in f32 (torch 2.13, `BlockWise1x128`, `BlockWise128x128`)."""
BLOCKWISE_FORMS = ("1x128", "128x128")
BLOCKWISE_PITCH = 4  # blocks of K that a row of 128x128 scales has a multiple of


def blockwise_scale_shape(form: str, rows: int, k: int) -> tuple[int, int]:
    """The array of the f32 scales of an operand [rows, k], as it lies in memory.

    1x128: [blocks of K, rows]. 128x128: [blocks of rows, blocks of K], the latter rounded up to 4.
    """
    blocks = -(-k // BLOCKWISE)
    if form == "1x128":
        return blocks, rows
    return -(-rows // BLOCKWISE), -(-blocks // BLOCKWISE_PITCH) * BLOCKWISE_PITCH


def blocked_scale_shape(rows: int, blocks: int) -> tuple[int, int, int, int, int]:
    """The array that holds the scales of `rows` by `blocks` in the blocked layout.

    Its indices are the atom's row and its place along K, then row % 32, row / 32 % 4, block % 4.
    """
    return -(-rows // SCALE_ATOM_ROWS), -(-blocks // SCALE_ATOM_BLOCKS), 32, 4, 4


ITEM_BYTES = {name: dtype.bytes for name, dtype in DTYPES.items()}
NUMPY_NAMES = {name: dtype.numpy for name, dtype in DTYPES.items()}
TORCH_NAMES = {name: f"torch.{dtype.torch}" for name, dtype in DTYPES.items()}
INTEGERS = tuple(name for name, dtype in DTYPES.items() if dtype.is_integer)


def is_torch(value: Any) -> bool:
    """Whether `value` is a torch tensor, told without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@functools.cache
def torch_dtype(dtype: str) -> Any:
    """The torch.dtype of a manifest's dtype."""
    import torch

    return getattr(torch, DTYPES[dtype].torch)

"""What the compiler asks of the table of element types (`runtime/element_types.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..runtime.element_types import DTYPES, DType

__all__ = ["DTYPES", "DType"]

OPERAND_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.operand_kind)
OUTPUT_DTYPES = ("bf16", "f16", "f32", "s32")
ACCUMULATOR_DTYPES = ("f32", "s32")
_OPERANDS = {DTYPES[name].mlir: DTYPES[name] for name in OPERAND_DTYPES}
_STORED = {dtype.mlir: dtype for dtype in DTYPES.values() if dtype.name != "tf32"}


def operand_dtype(mlir: str) -> DType | None:
    """What the tensor core makes of an operand of this MLIR type, None if it takes none such."""
    return _OPERANDS.get(mlir)


def stored_dtype(mlir: str) -> DType | None:
    """The type of a tensor's elements in memory, by its MLIR type."""
    return _STORED.get(mlir)


def mix_refusal(a: DType, b: DType) -> str | None:
    """Why no MMA takes A and B of these types together (PTX ISA, tcgen05.mma and wgmma kinds)."""
    if a == b or a.operand_kind == b.operand_kind != "f16":
        return None
    mixes = " (8 bits: both floats or both integers)" if 1 in (a.bytes, b.bytes) else ""
    return f"must be one type{mixes}, got {a.name} and {b.name}"


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
    if c != "s32" or accumulator == "s32":
        return None
    return f"must be bf16, f16 or f32 for sums in {accumulator}, got {c}"

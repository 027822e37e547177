"""What the compiler asks of the table of element types (`runtime/element_types.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..runtime.element_types import DTYPES, FMA, DType

__all__ = ["DTYPES", "FMA", "DType"]

OPERAND_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.operand_kind)
TENSOR_DTYPES = tuple(name for name in OPERAND_DTYPES if DTYPES[name].operand_kind != FMA)
THREAD_DTYPES = ("f16", "bf16", "f32", "f64")  # PTX ISA, fma; the first two are widened to f32
OUTPUT_DTYPES = ("bf16", "f16", "f32", "s32", "f64")
ACCUMULATOR_DTYPES = ("f32", "s32", "f64")
MIXED_KINDS = ("f8f6f4", "i8")
_BY_TENSOR_CORE = {DTYPES[name].mlir: DTYPES[name] for name in TENSOR_DTYPES}
_BY_THREADS = {DTYPES[name].mlir: DTYPES[name] for name in THREAD_DTYPES}
_OPERANDS = {**_BY_THREADS, **_BY_TENSOR_CORE}
_LIKE_OTHERS = ("tf32", "ue4m3")  # in memory f32 and e4m3
_STORED = {dtype.mlir: dtype for name, dtype in DTYPES.items() if name not in _LIKE_OTHERS}


def operand_dtype(mlir: str, mma: str = "") -> DType | None:
    """What the MMA of that name makes of an operand of this MLIR type, None if it takes none such.

    Threads multiply f32 as it is, a tensor core as tf32. Without a name it is what some MMA makes
    of it, the tensor core's first.
    """
    if not mma:
        return _OPERANDS.get(mlir)
    return (_BY_THREADS if mma == FMA else _BY_TENSOR_CORE).get(mlir)


def stored_dtype(mlir: str) -> DType | None:
    """The type of a tensor's elements in memory, by its MLIR type."""
    return _STORED.get(mlir)


def mix_refusal(a: DType, b: DType) -> str | None:
    """Why no MMA takes A and B of these types together (PTX ISA, tcgen05.mma and wgmma kinds)."""
    if a == b or a.operand_kind == b.operand_kind in MIXED_KINDS:
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
    if accumulator == "f64":
        return None if c == "f64" else f"must be f64 for sums in f64, got {c}"
    if c == "f64" or (c == "s32" and accumulator != "s32"):
        return f"must be bf16, f16 or f32 for sums in {accumulator}, got {c}"
    return None

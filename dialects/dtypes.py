"""Element types that a matmul may use, as one table: add a row to support another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """One element type; `name` is that of the PTX ISA, `mlir` how MLIR prints it.

    `operand_kind` is the tcgen05.mma kind that takes it as A or B (None: no operand), and
    `operand_code` its code in that kind's instruction descriptor (PTX ISA, tcgen05 instruction
    descriptor). `k_per_mma` is the K extent of one MMA in elements, `accumulator` the type of its
    sums. `result` is C's type where none is asked for.

    tf32 is f32 in memory, of which the tensor core ignores the low 13 bits.
    """

    name: str
    mlir: str
    bytes: int
    operand_kind: str | None = None
    operand_code: int = 0
    k_per_mma: int = 0
    accumulator: str = "f32"
    result: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether its sums are exact."""
        return self.name[0] in "su"


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f16", "f16", 2, "f16", 0, 16, result="f16"),
        DType("bf16", "bf16", 2, "f16", 1, 16, result="bf16"),
        DType("tf32", "f32", 4, "tf32", 2, 8, result="f32"),
        DType("e4m3", "f8E4M3FN", 1, "f8f6f4", 0, 32, result="bf16"),
        DType("e5m2", "f8E5M2", 1, "f8f6f4", 1, 32, result="bf16"),
        DType("s8", "i8", 1, "i8", 1, 32, accumulator="s32", result="s32"),
        DType("u8", "ui8", 1, "i8", 0, 32, accumulator="s32", result="s32"),
        DType("f32", "f32", 4),
        DType("s32", "i32", 4),
    )
}
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

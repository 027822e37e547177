"""Element types that a matmul may use, as one table: add a row to support another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """One element type; `name` is also how MLIR prints it.

    `operand_kind` is the tcgen05.mma kind that takes it as A or B (None: no operand), and
    `operand_code` its code in that kind's instruction descriptor (PTX ISA, tcgen05 instruction
    descriptor, table for .kind::f16). `k_per_mma` is the K extent of one MMA in elements.
    """

    name: str
    bytes: int
    operand_kind: str | None = None
    operand_code: int = 0
    k_per_mma: int = 0


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f16", 2, operand_kind="f16", operand_code=0, k_per_mma=16),
        DType("bf16", 2, operand_kind="f16", operand_code=1, k_per_mma=16),
        DType("f32", 4),
    )
}
OPERAND_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.operand_kind)
OUTPUT_DTYPES = ("bf16", "f16", "f32")
ACCUMULATOR_DTYPES = ("f32",)

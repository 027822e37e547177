"""The element types of matmuls, as one table for the compiler and the runtime; needs no numpy.

A row is all that a type needs: add one to support another (CONTRIBUTING, "A type").
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DType:
    """One element type; `name` is that of the PTX ISA, `mlir` how MLIR prints it.

    `bytes` is its size in memory; `numpy` and `torch` are what these call it, numpy by several
    names where arrays of bits stand for what it lacks. `operand_kind` is the tcgen05.mma kind that
    takes it as A or B, `fma` where only threads multiply it (None: no operand), and `operand_code`
    its code in that kind's instruction descriptor (PTX ISA, tcgen05 instruction descriptor).
    `k_per_mma` is the K extent of one MMA in elements, `accumulator` the type of its sums. `result`
    is C's type where none is asked for.

    tf32 is f32 in memory, of which the tensor core ignores the low 13 bits; an operand of f32 has
    all of them, and so has one of f64.
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

    @property
    def accumulator_bytes(self) -> int:
        """Bytes of one sum."""
        return 8 if self.accumulator == "f64" else 4

    @property
    def is_integer(self) -> bool:
        """Whether its sums are exact."""
        return self.name[0] in "su"


FMA = "fma"
_BITS = ("bfloat16", "uint16", "int16")
_E4M3, _E5M2 = "float8_e4m3fn", "float8_e5m2"
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
        DType("s32", "i32", 4, ("int32",), "int32"),
    )
}
ITEM_BYTES = {name: dtype.bytes for name, dtype in DTYPES.items()}
NUMPY_NAMES = {name: dtype.numpy for name, dtype in DTYPES.items()}
TORCH_NAMES = {name: f"torch.{dtype.torch}" for name, dtype in DTYPES.items()}
INTEGERS = tuple(name for name, dtype in DTYPES.items() if dtype.is_integer)


def is_torch(value: Any) -> bool:
    """Whether `value` is a torch tensor, told without importing torch."""
    return _is_of_torch(type(value))


@functools.cache
def torch_dtype(dtype: str) -> Any:
    """The torch.dtype of a manifest's dtype."""
    import torch

    return getattr(torch, DTYPES[dtype].torch)


@functools.cache  # a tensor's type takes half a microsecond to tell its module
def _is_of_torch(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "torch"

"""The matmul a user asks for, and the linalg module that says the same."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..dialects.dtypes import ACCUMULATOR_DTYPES, OPERAND_DTYPES, OUTPUT_DTYPES
from ..dialects.errors import OptionError
from ..dialects.mlir import ir

EXTENT_MAX = 2**31 - 1


@dataclass(frozen=True)
class MatmulSpec:
    """C[M,N] = A[M,K] · B[N,K]ᵀ with static shapes.

    `a_major` is "k" (A stored M×K) or "m" (stored K×M), `b_major` "k" (B stored N×K) or "n"
    (stored K×N); C is stored M×N. Raises `OptionError` for what can't be built.
    """

    m: int
    n: int
    k: int
    a_dtype: str = "bf16"
    b_dtype: str = "bf16"
    c_dtype: str = "bf16"
    acc_dtype: str = "f32"
    a_major: str = "k"
    b_major: str = "k"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            extent = getattr(self, name)
            if not isinstance(extent, int) or not 1 <= extent <= EXTENT_MAX:
                raise OptionError(f"spec: {name} must be 1 to {EXTENT_MAX}, got {extent}")
        self._check("a_dtype", OPERAND_DTYPES)
        self._check("b_dtype", OPERAND_DTYPES)
        self._check("c_dtype", OUTPUT_DTYPES)
        self._check("acc_dtype", ACCUMULATOR_DTYPES)
        self._check("a_major", ("k", "m"))
        self._check("b_major", ("k", "n"))
        if self.a_dtype != self.b_dtype:
            raise OptionError(
                f"spec: a_dtype and b_dtype must be one type, got {self.a_dtype} and {self.b_dtype}"
            )

    def _check(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise OptionError(f"spec: {name} must be one of {', '.join(choices)}, got {value!r}")

    def as_dict(self) -> dict[str, int | str]:
        """The fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def mlir_text(self) -> str:
        """The module of linalg on tensors that computes this matmul."""
        a, a_map = _operand(self.m, self.k, self.a_dtype, self.a_major, "d0")
        b, b_map = _operand(self.n, self.k, self.b_dtype, self.b_major, "d1")
        accumulator = f"tensor<{self.m}x{self.n}x{self.acc_dtype}>"
        c = f"tensor<{self.m}x{self.n}x{self.c_dtype}>"
        truncate = f"%c = arith.truncf %sum : {accumulator} to {c}"
        result = "%sum" if self.c_dtype == self.acc_dtype else "%c"
        return f"""
func.func @matmul(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : {self.acc_dtype}
  %empty = tensor.empty() : {accumulator}
  %init = linalg.fill ins(%zero : {self.acc_dtype}) outs(%empty : {accumulator}) -> {accumulator}
  %sum = linalg.matmul
    indexing_maps = [{a_map}, {b_map}, affine_map<(d0, d1, d2) -> (d0, d1)>]
    ins(%a, %b : {a}, {b}) outs(%init : {accumulator}) -> {accumulator}
  {"" if self.c_dtype == self.acc_dtype else truncate}
  return {result} : {c}
}}
"""

    def build(self) -> ir.Module:
        """`mlir_text` parsed in the current context."""
        return ir.Module.parse(self.mlir_text())


def _operand(mn: int, k: int, dtype: str, major: str, dim: str) -> tuple[str, str]:
    """The tensor type and indexing map of an operand whose M or N is loop dim `dim`."""
    shape, dims = (f"{mn}x{k}", f"{dim}, d2") if major == "k" else (f"{k}x{mn}", f"d2, {dim}")
    return f"tensor<{shape}x{dtype}>", f"affine_map<(d0, d1, d2) -> ({dims})>"

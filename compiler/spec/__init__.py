"""The matmul a user asks for, and the linalg module that says the same; imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...dialects.dtypes import (
    ACCUMULATOR_DTYPES,
    DTYPES,
    FMA,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    mix_refusal,
    output_refusal,
    size_refusal,
)
from ...dialects.errors import OptionError

EXTENT_MAX = 2**31 - 1


@dataclass(frozen=True)
class MatmulSpec:
    """C[M,N] = A[M,K] · B[N,K]ᵀ with static shapes.

    `a_major` is "k" (A stored M×K) or "m" (stored K×M). `b_major` is "k" (B stored N×K) or "n"
    (stored K×N). C is stored M×N.

    Types have the names of `dialects.dtypes`. Operands of tf32 are f32 in memory, multiplied by a
    tensor core; those of f32 and f64 are multiplied as they are, by the threads' fma. Two types of
    8 bits may differ if both are floats or both are integers. Sums of integers are s32, and so may
    C be; sums of f64 are f64, and so is C. Raises `OptionError` if the matmul cannot be built.
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

    @staticmethod
    def of_type(m: int, n: int, k: int, dtype: str) -> MatmulSpec:
        """Operands of one type with K contiguous, and a C of the type that goes with it."""
        if dtype not in OPERAND_DTYPES:
            known = ", ".join(OPERAND_DTYPES)
            raise OptionError(f"spec: type must be one of {known}, got {dtype!r}")
        found = DTYPES[dtype]
        return MatmulSpec(m, n, k, dtype, dtype, found.result, found.accumulator)

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            extent = getattr(self, name)
            if type(extent) is not int or not 1 <= extent <= EXTENT_MAX:
                raise OptionError(f"spec: {name} must be 1 to {EXTENT_MAX}, got {extent!r}")
        self._check("a_dtype", OPERAND_DTYPES)
        self._check("b_dtype", OPERAND_DTYPES)
        self._check("c_dtype", OUTPUT_DTYPES)
        self._check("acc_dtype", ACCUMULATOR_DTYPES)
        self._check("a_major", ("k", "m"))
        self._check("b_major", ("k", "n"))
        self._check_types()
        self._check_bytes()

    def _check_bytes(self) -> None:
        shapes = {"a": (self.m, self.k), "b": (self.n, self.k), "c": (self.m, self.n)}
        for name, (rows, columns) in shapes.items():
            reason = size_refusal((rows, columns), DTYPES[getattr(self, f"{name}_dtype")].bytes)
            if reason:
                raise OptionError(f"spec: {name} {reason}")

    def _check_types(self) -> None:
        """What an MMA takes together, and what it gives."""
        a, b = DTYPES[self.a_dtype], DTYPES[self.b_dtype]
        mixed = mix_refusal(a, b)
        if mixed:
            raise OptionError(f"spec: a_dtype and b_dtype {mixed}")
        if self.acc_dtype != a.accumulator:
            raise OptionError(
                f"spec: acc_dtype must be {a.accumulator} for {a.name}, got {self.acc_dtype}"
            )
        result = output_refusal(self.acc_dtype, self.c_dtype)
        if result:
            raise OptionError(f"spec: c_dtype {result}")

    def _check(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise OptionError(f"spec: {name} must be one of {', '.join(choices)}, got {value!r}")

    def as_dict(self) -> dict[str, int | str]:
        """The fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def mlir_text(self) -> str:
        """The module of linalg on tensors that computes this matmul."""
        a = _Operand.of("a", "d0", (self.m, self.k), self.a_dtype, self.a_major)
        b = _Operand.of("b", "d1", (self.n, self.k), self.b_dtype, self.b_major)
        sums = DTYPES[self.acc_dtype].mlir
        accumulator = f"tensor<{self.m}x{self.n}x{sums}>"
        c = f"tensor<{self.m}x{self.n}x{DTYPES[self.c_dtype].mlir}>"
        conversion, result = self._conversion(f"tensor<{self.m}x{self.n}x")
        function = f"""
func.func @matmul(%a: {a.stored}, %b: {b.stored}) -> {c} {{
  %zero = arith.constant {"0" if sums == "i32" else "0.0"} : {sums}
  %empty = tensor.empty() : {accumulator}
  %init = linalg.fill ins(%zero : {sums}) outs(%empty : {accumulator}) -> {accumulator}
  {a.extension}{b.extension}%sum = linalg.matmul
    indexing_maps = [{a.map}, {b.map}, affine_map<(d0, d1, d2) -> (d0, d1)>]
    ins({a.name}, {b.name} : {a.type}, {b.type}) outs(%init : {accumulator}) -> {accumulator}
  {conversion}
  return {result} : {c}
}}
"""
        if DTYPES[self.a_dtype].operand_kind != FMA:
            return function
        return f'module attributes {{tile.mma_unit = "{FMA}"}} {{{function}}}\n'

    def _conversion(self, shape: str) -> tuple[str, str]:
        """The ops that make C of the sums, tensors of `shape`, and the result's name."""
        lines, name, dtype = [], "%sum", DTYPES[self.acc_dtype].mlir
        if dtype == "i32" and self.c_dtype != "s32":
            lines.append(f"%float = arith.sitofp {name} : {shape}i32> to {shape}f32>")
            name, dtype = "%float", "f32"
        if dtype == "f32" and self.c_dtype != "f32":
            lines.append(f"%c = arith.truncf {name} : {shape}f32> to {shape}{self.c_dtype}>")
            name = "%c"
        return "\n  ".join(lines), name


@dataclass(frozen=True)
class _Operand:
    """Text about an operand: its name and type as linalg.matmul takes it, its indexing map, the
    type of the argument, and the op that makes the one of the other."""

    name: str
    type: str
    map: str
    stored: str
    extension: str = ""

    @staticmethod
    def of(name: str, dim: str, sizes: tuple[int, int], dtype: str, major: str) -> _Operand:
        """Operand `name` of sizes (M or N, K), whose M or N is loop dim `dim`."""
        mn, k = sizes
        shape, dims = (f"{mn}x{k}", f"{dim}, d2") if major == "k" else (f"{k}x{mn}", f"d2, {dim}")
        map_ = f"affine_map<(d0, d1, d2) -> ({dims})>"
        element = DTYPES[dtype]
        if not element.is_integer:
            type_ = f"tensor<{shape}x{element.mlir}>"
            return _Operand(f"%{name}", type_, map_, type_)
        stored, wide = f"tensor<{shape}xi8>", f"tensor<{shape}xi32>"
        cast = "extui" if element.name == "u8" else "extsi"
        extension = f"%{name}_wide = arith.{cast} %{name} : {stored} to {wide}\n  "
        return _Operand(f"%{name}_wide", wide, map_, stored, extension)

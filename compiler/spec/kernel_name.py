"""The name of a kernel in profiles: its product, types, sizes and epilogue."""

from __future__ import annotations

from collections.abc import Iterable

from ...dialects.dtypes import DTYPES
from .problem import ROWS_MOST, Problem, element_of

LENGTH_MAX = 120
"""Of a name; operators that find no room are told by "more"."""
COMPUTING = ("arith", "math")
UNNAMED = ("constant", "extf", "truncf", "sitofp")
"""Ops of these dialects that compute nothing."""


def kernel_name(spec: Problem, ops: Iterable[str] = ()) -> str:
    """Such as `matmul_bf16_4096x14336x4096_mul_add_tanh`, an identifier of C.

    It follows from the product and the ops after it alone, so that equal kernels have one name.
    Sizes are the matrices or groups, M, N and K; M may be "any", or a range as "65to128", and K
    may be "any". Each kind
    of op is named once, in the order in which they compute.
    """
    name = "_".join([_product(spec), _types(spec), _sizes(spec)])
    for each in _operators(ops):
        if len(name) + len(each) + len("__more") > LENGTH_MAX:
            return f"{name}_more"
        name += f"_{each}"
    return name


def _product(spec: Problem) -> str:
    stack = "grouped_" if spec.groups else "batch_" if spec.batch else ""
    return f"{stack}{'dual_' if spec.products == 2 else ''}matmul"


def _types(spec: Problem) -> str:
    """The type of A, that of B if it differs, and that of C if it is not A's."""
    a, b, c = spec.a_dtype, spec.b_dtype, spec.c_dtype
    usual = DTYPES[element_of(a)].result
    return a + (f"_by_{b}" if b != a else "") + (f"_to_{c}" if c != usual else "")


def _sizes(spec: Problem) -> str:
    stack = [spec.groups or spec.batch] if spec.groups or spec.batch else []
    matrices = ["any" if spec.dynamic_batch else each for each in stack]
    depth = "any" if spec.dynamic_k else spec.k
    return "x".join(map(str, [*matrices, _rows(spec), spec.n, depth]))


def _rows(spec: Problem) -> str:
    if spec.most_m:
        most = "up" if spec.most_m >= ROWS_MOST else f"to{spec.most_m}"
        return f"{spec.least_m}{most}"
    return "any" if spec.dynamic_m else str(spec.m)


def _operators(ops: Iterable[str]) -> list[str]:
    """The kinds of operators, as `mul` of `arith.mulf`."""
    parts = (each.partition(".") for each in ops)
    computing = (name for dialect, _, name in parts if dialect in COMPUTING and name not in UNNAMED)
    return list(
        dict.fromkeys(name if name == "erf" else name.removesuffix("f") for name in computing)
    )

"""torch's products of scaled operands in terms of operators that torch_mlir imports.

    torch.nn.functional.scaled_mm      aten._scaled_mm_v2
    torch._scaled_mm                   aten._scaled_mm       →    mm of f32, times scales, plus bias

`normalize` sees a product of the 8-bit floats again, with the scales in the epilogue. Numbers of
recipes and swizzles are those of ScalingType and SwizzleType, ATen/BlasBackend.h of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialects.errors import CompileError

aten: Any = torch.ops.aten
TENSOR_WISE, ROW_WISE = 0, 1
EXACT_SUMS = "exact sums"
FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)


def scaled_operators(asked: set[str]) -> dict[Any, Callable[..., Any]]:
    """The table, for torch.export; `EXACT_SUMS` goes to `asked` where a product asks for them."""

    def first(
        a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None,
        out_dtype: Any = None, use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        if scale_result is not None:
            raise _refused("scale_result must be None, got a tensor", "multiply scale_a by it")
        factors = _factor("a", a, scale_a), _factor("b", b.t(), scale_b)
        return product(a, b, factors, bias, out_dtype, use_fast_accum)

    def second(
        a: Any, b: Any, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any,
        swizzle_b: Any, bias: Any, out_dtype: Any, contraction_dim: Any = (),
        use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        if len(contraction_dim):
            rule = f"contraction_dim must be (), got {list(contraction_dim)}"
            raise _refused(rule, "transpose an operand")
        _check_recipes("a", recipe_a, swizzle_a)
        _check_recipes("b", recipe_b, swizzle_b)
        factors = _factor("a", a, scale_a[0]), _factor("b", b.t(), scale_b[0])
        return product(a, b, factors, bias, out_dtype, use_fast_accum)

    def product(a: Any, b: Any, factors: Any, bias: Any, out_dtype: Any, fast: bool) -> Any:
        if not fast:
            asked.add(EXACT_SUMS)
        wide = a.float() @ b.float()
        for factor in factors:
            wide = wide * factor
        wide = wide if bias is None else wide + bias.float()
        return wide.to(out_dtype or a.dtype)

    return {aten._scaled_mm.default: first, aten._scaled_mm_v2.default: second}


def _check_recipes(name: str, recipes: Sequence[int], swizzles: Sequence[int]) -> None:
    if list(recipes) not in ([TENSOR_WISE], [ROW_WISE]):
        got = ", ".join(torch.nn.functional.ScalingType(each).name for each in recipes)
        raise _of_blocks(f"scale_recipe_{name} must be TensorWise or RowWise, got {got}")
    if any(swizzles):
        rule = f"swizzle_{name} must be NO_SWIZZLE or None for factors, got SWIZZLE_32_4_4"
        raise _refused(rule, "leave it out")


def _factor(name: str, rows: Any, scale: Any) -> Any:
    """A scale of the whole, or of each row, as C is multiplied by it."""
    if rows.dtype not in FLOATS or scale.dtype != torch.float32:
        rule = f"scale_{name} must be float32, of float8_e4m3fn or float8_e5m2"
        raise _of_blocks(f"{rule}, got {scale.dtype} of {rows.dtype}")
    count = rows.shape[0]
    if scale.numel() == 1:
        return scale.reshape([])
    wanted = [count, 1] if name == "a" else [1, count]
    if list(scale.shape) != wanted:
        rule = f"scale_{name} must have one number, or be {wanted}, got {list(scale.shape)}"
        raise _of_blocks(rule)
    return scale


def _of_blocks(rule: str) -> CompileError:
    return _refused(rule, "call tilewright.scaled_mm for scales of blocks")


def _refused(rule: str, cure: str) -> CompileError:
    return CompileError(f"scaled_mm: {rule}; {cure}")

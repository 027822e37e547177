"""torch's matmuls of scaled operands, as operators that torch_mlir imports.

    torch.nn.functional.scaled_mm      aten._scaled_mm_v2
    torch._scaled_mm                   aten._scaled_mm       →    mm of f32, times scales, plus bias

`normalize` sees a product of the 8-bit floats again, with the scales in the epilogue. Numbers of
recipes and swizzles are those of ScalingType and SwizzleType, ATen/BlasBackend.h of torch 2.13.
Scales of blocks are `torch_blocks`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialects.errors import CompileError
from .torch_blocks import BY_BLOCKS, SCALED_MM, spread

aten: Any = torch.ops.aten
TENSOR_WISE, ROW_WISE = 0, 1
EXACT_SUMS, OF_BLOCKS = "exact sums", "scales of blocks"
FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)


def scaled_operators(asked: set[str]) -> dict[Any, Callable[..., Any]]:
    """The table, for torch.export; `asked` takes what products have: `EXACT_SUMS`, `OF_BLOCKS`."""

    def first(
        a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None,
        out_dtype: Any = None, use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        if scale_result is not None:
            raise _refused("scale_result must be None, got a tensor", "multiply scale_a by it")
        factors = _factor("a", a, scale_a), _factor("b", b.t(), scale_b)
        return product(a, b, factors, bias, out_dtype or a.dtype, use_fast_accum)

    def second(
        a: Any, b: Any, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any,
        swizzle_b: Any, bias: Any, out_dtype: Any, contraction_dim: Any = (),
        use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        if len(contraction_dim):
            rule = f"contraction_dim must be (), got {list(contraction_dim)}"
            raise _refused(rule, "transpose an operand")
        by_blocks = [bool(BY_BLOCKS.keys() & set(each)) for each in (recipe_a, recipe_b)]
        if by_blocks[0] != by_blocks[1]:
            rule = "both or none must have scales of blocks, got one that has"
            raise _refused(rule, "quantize the other")
        if by_blocks[0]:
            asked.add(OF_BLOCKS)
        wide_a, of_a = _side("a", a, scale_a, recipe_a, swizzle_a)
        wide_b, of_b = _side("b", b.t(), scale_b, recipe_b, swizzle_b)
        return product(
            wide_a, wide_b.t(), (*of_a, *of_b), bias, out_dtype or a.dtype, use_fast_accum
        )

    def product(a: Any, b: Any, factors: Any, bias: Any, out_dtype: Any, fast: bool) -> Any:
        if not fast:
            asked.add(EXACT_SUMS)
        wide = a.float() @ b.float()
        for factor in factors:
            wide = wide * factor
        wide = wide if bias is None else wide + bias.float()
        return wide.to(out_dtype)

    return {aten._scaled_mm.default: first, **({SCALED_MM: second} if SCALED_MM else {})}


def _side(
    name: str, rows: Any, scales: Sequence[Any], recipes: Sequence[int], swizzles: Sequence[int]
) -> tuple[Any, list[Any]]:
    """An operand, times the scales of its blocks if it has some, and what C is multiplied by."""
    swizzles = [*swizzles, *[0] * len(scales)]
    first, *others = recipes
    kinds = [TENSOR_WISE, ROW_WISE] if not others else []
    if first in BY_BLOCKS and list(others) in ([], [TENSOR_WISE]) and not any(swizzles[1:]):
        wide = spread(name, rows, scales[0], BY_BLOCKS[first], bool(swizzles[0]))
        return wide, [_number(name, each) for each in scales[1:]]
    if first not in kinds:
        got = ", ".join(torch.nn.functional.ScalingType(each).name for each in recipes)
        rule = f"scale_recipe_{name} must be TensorWise, RowWise, or one of blocks of 16 or 32"
        raise _refused(f"{rule} with a TensorWise or without, got {got}", "quantize it so")
    if any(swizzles):
        rule = f"swizzle_{name} must be NO_SWIZZLE or None for factors, got SWIZZLE_32_4_4"
        raise _refused(rule, "leave it out")
    return rows, [_factor(name, rows, scales[0])]


def _number(name: str, scale: Any) -> Any:
    """The f32 scale of a whole operand beside those of its blocks."""
    if scale.dtype != torch.float32 or scale.numel() != 1:
        got = f"{scale.dtype} of {list(scale.shape)}"
        raise _refused(f"the second scale_{name} must be one float32, got {got}", "give it so")
    return scale.reshape([])


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

"""`scaled_grouped_mm`: groups of products with factors, as torch.nn.functional.scaled_grouped_mm.

A factor of each row of A and of each column of B, or of each group, is an operand of the epilogue:
C is the sums times both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialects.errors import OptionError
from ...runtime.operands.dlpack import gpu_of
from ..importers.linalg_text import SHORT_SUMS, TWO_LEVEL_CHIPS, short_sums_rule
from ..spec import TWO_LEVEL
from .grouped import grouped_product
from .grouped_fused import After
from .kernels import How, default_target
from .operands import check_tensors, result_type
from .scaled import PLAIN

RECIPES = ("TensorWise", "RowWise")


def scaled_grouped_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    offs: Any = None,
    output_dtype: Any = "bf16",
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
    *,
    rows: Any = None,
    check_offsets: bool = False,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> Any:
    """Products of groups, times factors, with torch's signature.

    mat_a, mat_b, offs, check_offsets: as for `grouped_mm`, of e4m3 or e5m2. K of both must be
        contiguous on sm_90a, whose MMA reads no other 8-bit operands; else they are copied.
    scale_a, scale_b: f32. RowWise, of torch.nn.functional.ScalingType: one for each row of mat_a
        and each column of mat_b: [rows] and [groups, n]; [groups, m] and [columns]; of stacks
        [groups, m] and [groups, n]; where K is grouped, one for each group: [groups · m] and
        [groups · n]. TensorWise: one, or one for each group, [groups], of an operand that has a
        matrix for each.
    bias, swizzle_a, swizzle_b, contraction_dim: None and (), as no recipe here takes them. What
        else is to be computed of the sums, `grouped_mm` takes as an epilogue, of 8-bit floats, too.
    rows: as for `grouped_mm`; scale_a is then one for each of them, as `scale[rows]` has it.
    output_dtype, use_fast_accum, target, pipeline, preset: as for `scaled_mm`.

    Raises OptionError for what a recipe does not have, CompileError if the product cannot be
    compiled, DeviceError if it cannot be launched.
    """
    check_tensors("scaled_grouped_mm", mat_a=mat_a, mat_b=mat_b, offs=offs)
    if len(contraction_dim):
        raise _refused("contraction_dim must be ()", contraction_dim)
    if bias is not None:
        raise _refused("bias must be None", "one; add it by an epilogue of grouped_mm")
    chip = target or default_target(gpu_of(mat_a))
    how = How(result_type(output_dtype), chip, pipeline or "", preset or "")
    if chip in SHORT_SUMS and not use_fast_accum:
        if chip not in TWO_LEVEL_CHIPS:
            raise OptionError(f"scaled_grouped_mm: {short_sums_rule(chip)}")
        how = how._replace(sums=TWO_LEVEL)
    groups = _groups_of(mat_a, mat_b, offs)
    of_k = len(mat_a.shape) == len(mat_b.shape) == 2
    read = mat_a.shape if rows is None else (len(rows), mat_a.shape[-1])
    of_a = _factor("a", read, groups, of_k, scale_a, scale_recipe_a, swizzle_a)
    of_b = _factor("b", mat_b.shape, groups, of_k, scale_b, scale_recipe_b, swizzle_b)
    after = After(_times, (of_a, of_b))
    return grouped_product(mat_a, mat_b, offs, how, after, check_offsets, rows)


def _times(acc: Any, of_a: Any, of_b: Any) -> Any:
    return acc * of_a * of_b


def _groups_of(mat_a: Any, mat_b: Any, offs: Any) -> int:
    """How many groups there are: as many as matrices of a stack, or offsets."""
    ranks = len(mat_a.shape), len(mat_b.shape)
    if not set(ranks) <= {2, 3}:
        rule = "mat_a and mat_b must have 2 or 3 dims"
        raise _refused(rule, f"{list(mat_a.shape)} and {list(mat_b.shape)}")
    if 3 in ranks:
        return (mat_a if ranks[0] == 3 else mat_b).shape[0]
    if offs is None:
        raise _refused("offs must be given where K is grouped", None)
    return offs.shape[0]


def _factor(
    name: str, side: Sequence[int], groups: int, of_k: bool, scale: Any, recipe: Any, swizzle: Any
) -> Any:
    """What C is multiplied by: of each group, of the rows or columns of all, or of everything."""
    scale, recipe, swizzle = (_only(name, each) for each in (scale, recipe, swizzle))
    kind = getattr(recipe, "name", str(recipe))
    if kind not in RECIPES:
        raise _refused(f"scale_recipe_{name} must be {' or '.join(RECIPES)}", kind)
    check_tensors("scaled_grouped_mm", **{f"scale_{name}": scale})
    swizzle = getattr(swizzle, "name", swizzle)
    if swizzle not in PLAIN:
        raise _refused(f"swizzle_{name} must be NO_SWIZZLE or None", swizzle)
    if str(scale.dtype) != "torch.float32":
        raise _refused(f"scale_{name} must be float32", scale.dtype)
    by_group = of_k or len(side) == 3
    extent = side[-2] if name == "a" else side[-1]
    if kind == "TensorWise":
        fits = scale.numel() == 1 or (by_group and list(scale.shape) == [groups])
        wanted = f"one number{f' or [{groups}]' if by_group else ''}"
        shape = [] if scale.numel() == 1 else [groups, 1, 1]
    else:
        sizes = [groups, extent] if len(side) == 3 else [groups * extent]
        sizes = sizes if by_group else [extent]
        fits, wanted = list(scale.shape) == sizes, str(sizes)
        shape = [groups] * by_group + ([extent, 1] if name == "a" else [1, extent])
    if not fits:
        raise _refused(f"scale_{name} must be {wanted} for {kind}", list(scale.shape))
    return scale.reshape(shape)


def _only(name: str, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    if len(value) != 1:
        raise _refused(f"scale_{name} must be one with one recipe", f"{len(value)}")
    return value[0]


def _refused(rule: str, got: Any) -> OptionError:
    return OptionError(f"scaled_grouped_mm: {rule}, got {got}")

"""`scaled_grouped_mm`: grouped GEMM with scales, like torch.nn.functional.scaled_grouped_mm.

A factor of each row of A and of each column of B, or of each group, is an operand of the epilogue:
C is the sums times both. Scales of blocks are those of the product (`grouped_blocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....runtime.operands.dlpack import gpu_of
from ..kernels.lookup import How, default_target, is_seen_by_torch
from ..operands.operands import (
    check_flags,
    check_no_dims,
    check_options,
    check_tensors,
    given,
    result_type,
)
from ..operands.scaled_sides import PLAIN, sums_of
from .grouped_blocks import BLOCK_RECIPES, multiply_blocks, names_of, refused, side_of
from .grouped_fused import After
from .grouped_mm import check_ends, grouped_product

NAME = "scaled_grouped_mm"
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
    """Products of groups, times scales, with torch's signature.

    mat_a, mat_b, offs, check_offsets: as for `grouped_mm`, of e4m3 or e5m2. K of both must be
        contiguous on sm_90a, whose MMA reads 8-bit operands no other way; else they are copied.
    scale_a, scale_b, scale_recipe_a, scale_recipe_b, swizzle_a, swizzle_b: as for `scaled_mm`, in
        f32 unless stated otherwise. RowWise of torch.nn.functional.ScalingType: one per row of
        mat_a and per column of mat_b, [rows] and [groups, n], or [groups, m] and [columns]; for
        stacks [groups, m] and [groups, n]; if K is grouped, one per group as well, [groups · m] and
        [groups · n]. TensorWise: a single one, or one per group, [groups], for an operand with one
        matrix per group. BlockWise1x32 (e8m0, for e4m3, e5m2 or e2m1) and BlockWise1x16 (e4m3, for
        e2m1), on sm_100a and sm_120a: with SWIZZLE_32_4_4, scales of a stack are blocked per
        matrix, and those of grouped rows per group, which begins with 128 rows of its own; without
        a swizzle they are [rows, blocks] and [groups, n, blocks]. A TensorWise scale beside them,
        in a list, is a further factor. BlockWise1x128 (f32 [rows, k/128], rows contiguous), with
        the same or with BlockWise128x128 of the stack (f32, per matrix as in `scaled_mm`), on
        sm_90a and sm_100a; for two stacks and for grouped rows, not for a grouped K.
    bias, contraction_dim: None and (), since no recipe here takes them. `grouped_mm` takes further
        computations as an epilogue, also for 8-bit floats.
    rows: as for `grouped_mm`; scale_a then has one scale per row, as `scale[rows]` has. None with
        block scales.
    output_dtype, use_fast_accum, target, pipeline, preset: as for `scaled_mm`, except that None is
        bf16, as in torch.

    Raises OptionError for what a recipe does not support, CompileError if the product cannot be
    compiled, DeviceError if it cannot be launched.
    """
    texts = {"target": target, "pipeline": pipeline, "preset": preset}
    check_options(NAME, out_dtype=output_dtype, **texts)
    check_tensors(NAME, mat_a=mat_a, mat_b=mat_b, **given(offs=offs, rows=rows))
    check_flags(NAME, use_fast_accum=use_fast_accum, check_offsets=check_offsets)
    check_no_dims(NAME, contraction_dim)
    if bias is not None:
        raise refused("bias must be None", "one; add it by an epilogue of grouped_mm")
    chip = target or default_target(gpu_of(mat_a))
    how = How(result_type(output_dtype), chip, pipeline or "", preset or "")
    a = Scaled(mat_a, *_lists("a", scale_a, scale_recipe_a, swizzle_a))
    b = Scaled(mat_b, *_lists("b", scale_b, scale_recipe_b, swizzle_b))
    if a.has_blocks() or b.has_blocks():
        if rows is not None:
            raise refused("rows must be None with scales of blocks", "some; copy the rows")
        return _by_blocks(a, b, offs, how, check_offsets)
    how = how._replace(sums=sums_of(NAME, chip, mat_a, use_fast_accum))
    groups = _groups_of(mat_a, mat_b, offs)
    of_k = len(mat_a.shape) == len(mat_b.shape) == 2
    read = mat_a.shape if rows is None else (len(rows), mat_a.shape[-1])
    of_a = _factor("a", read, groups, of_k, *a.only("a"))
    of_b = _factor("b", mat_b.shape, groups, of_k, *b.only("b"))
    after = After(_times, (of_a, of_b))
    return grouped_product(mat_a, mat_b, offs, how, after, check_offsets, rows)


class Scaled(NamedTuple):
    """An operand as torch has it, with its scales, their recipes and swizzles by name."""

    matrix: Any
    scales: list[Any]
    recipes: list[str]
    swizzles: list[Any]

    def has_blocks(self) -> bool:
        """Whether a scale is that of a block."""
        return any(each in BLOCK_RECIPES for each in self.recipes)

    def only(self, name: str) -> tuple[Any, str, Any]:
        """The one scale of an operand without blocks."""
        if len(self.scales) != 1:
            raise refused(f"scale_{name} must be one with one recipe", len(self.scales))
        return self.scales[0], self.recipes[0], self.swizzles[0]

    @property
    def transposed(self) -> Scaled:
        """The same of the transposed operand."""
        return self._replace(matrix=self.matrix.mT)


def _lists(name: str, scale: Any, recipe: Any, swizzle: Any) -> tuple[list[Any], list[str], Any]:
    """Scales, names of recipes and of swizzles, one of each."""
    scales, recipes, swizzles = (
        list(each) if isinstance(each, (list, tuple)) else [each]
        for each in (scale, recipe, swizzle)
    )
    swizzles += [None] * (len(scales) - len(swizzles))
    if not len(scales) == len(recipes) == len(swizzles):
        got = f"{len(scales)} with {len(recipes)} and {len(swizzles)}"
        raise refused(f"scale_{name} must have a recipe each, and at most a swizzle", got)
    for each in scales:
        check_tensors(NAME, **{f"scale_{name}": each})
    return scales, names_of(recipes), [getattr(each, "name", each) for each in swizzles]


def _by_blocks(a: Scaled, b: Scaled, offs: Any, how: How, check_offsets: bool) -> Any:
    """The product with scales of blocks: of grouped rows, or of stacks."""
    ranks = a.matrix.dim(), b.matrix.dim()
    groups = _groups_of(a.matrix, b.matrix, offs)
    if ranks == (3, 2):
        return _by_blocks(b.transposed, a.transposed, offs, how, check_offsets).mT
    if ranks == (2, 2):
        raise refused("K must not be grouped with scales of blocks", "two matrices; widen them")
    if (offs is None) != (ranks == (3, 3)):
        raise refused("offs must be None for two stacks, and given else", offs)
    if not (a.has_blocks() and b.has_blocks()):
        got = f"{a.recipes} and {b.recipes}"
        raise refused("both operands must have scales of blocks", got)
    if any(is_seen_by_torch(each, each) for each in (a.matrix, b.matrix)):
        rule = "scales of blocks have neither gradients nor an operator of torch.compile"
        raise refused(rule, "a call that needs one; call it under no_grad")
    if offs is not None:
        check_ends(a.matrix, b.matrix, offs, check_offsets)
    sides, factors = [], []
    for name, each in (("a", a), ("b", b.transposed)):
        at = [number for number, kind in enumerate(each.recipes) if kind in BLOCK_RECIPES]
        if len(at) != 1:
            raise refused(f"scale_{name} must have one recipe of blocks", each.recipes)
        side_scales = each.scales[at[0]], each.recipes[at[0]], each.swizzles[at[0]]
        sides.append(side_of(name, each.matrix, *side_scales, groups))
        factors += [
            _of_tensor(name, scale, kind, swizzle, groups)
            for number, (scale, kind, swizzle) in enumerate(zip(*each[1:], strict=True))
            if number != at[0]
        ]
    after = After(_times_all, tuple(factors)) if factors else After()
    return multiply_blocks(sides[0], sides[1], offs, how, after)


def _of_tensor(name: str, scale: Any, kind: str, swizzle: Any, groups: int) -> Any:
    """A factor of everything, or of each group, beside scales of blocks."""
    if kind != "TensorWise" or swizzle not in PLAIN:
        rule = f"scale_{name} must be of blocks, with a plain TensorWise one at most"
        raise refused(rule, f"{kind} and {swizzle}")
    if str(scale.dtype) != "torch.float32":
        raise refused(f"scale_{name} must be float32 for TensorWise", scale.dtype)
    if scale.numel() != 1 and list(scale.shape) != [groups]:
        raise refused(f"scale_{name} must be one number or [{groups}]", list(scale.shape))
    return scale.reshape([]) if scale.numel() == 1 else scale.reshape([groups, 1, 1])


def _times_all(acc: Any, *factors: Any) -> Any:
    for factor in factors:
        acc = acc * factor
    return acc


def _times(acc: Any, of_a: Any, of_b: Any) -> Any:
    return acc * of_a * of_b


def _groups_of(mat_a: Any, mat_b: Any, offs: Any) -> int:
    """How many groups there are: as many as matrices of a stack, or offsets."""
    ranks = len(mat_a.shape), len(mat_b.shape)
    if not set(ranks) <= {2, 3}:
        rule = "mat_a and mat_b must have 2 or 3 dims"
        raise refused(rule, f"{list(mat_a.shape)} and {list(mat_b.shape)}")
    if 3 in ranks:
        return (mat_a if ranks[0] == 3 else mat_b).shape[0]
    if offs is None:
        raise refused("offs must be given where K is grouped", None)
    return offs.shape[0]


def _factor(
    name: str, side: Sequence[int], groups: int, of_k: bool, scale: Any, kind: str, swizzle: Any
) -> Any:
    """What C is multiplied by: of each group, of the rows or columns of all, or of everything."""
    if kind not in RECIPES:
        known = ", ".join((*RECIPES, *BLOCK_RECIPES))
        raise refused(f"scale_recipe_{name} must be one of {known}", kind)
    if swizzle not in PLAIN:
        raise refused(f"swizzle_{name} must be NO_SWIZZLE or None", swizzle)
    if str(scale.dtype) != "torch.float32":
        raise refused(f"scale_{name} must be float32", scale.dtype)
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
        raise refused(f"scale_{name} must be {wanted} for {kind}", list(scale.shape))
    return scale.reshape(shape)

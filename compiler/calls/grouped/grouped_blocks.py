"""`scaled_grouped_mm` with block scales, for block-scaled MMAs or in f32.

BlockWise1x32, BlockWise1x16      atoms of each group's rows, or a scale row by row    sm_100a
BlockWise1x128, BlockWise128x128  f32, by which threads multiply the sums of 128       sm_90a, too
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from ....dialects.dtypes import BLOCKWISE_FORMS, blocked_scale_shape, blockwise_scale_shape
from ....dialects.errors import OptionError
from ....runtime.group_sizes import rows_of_atoms
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.dlpack import gpu_of
from ....runtime.operands.results import new_zeros
from ...spec import BLOCKED, LINEAR, MatmulSpec
from ..kernels.found_kernels import FoundKernels
from ..kernels.lookup import How, check_passes
from ..operands.operands import operand_type, quick_key
from ..operands.placement import aligned, row_by_row
from ..operands.scaled_sides import BLOCKS, FORMATS, FORMS, PLAIN, SWIZZLED
from .grouped_fused import After, Grouped, find

BLOCK_RECIPES = (*BLOCKS, *FORMS)


class Side(NamedTuple):
    """An operand [rows, k], or a stack of such, with its scales as the kernel takes them.

    `format` names the format of elements with scales that MMAs take, `form` how f32 ones lie.
    """

    rows: Any
    scales: Any
    format: str = ""
    form: str = ""

    @property
    def depth(self) -> int:
        """Elements along K, of which two may lie in a byte."""
        return self.rows.shape[-1] * _packed(self.rows)


_kernels: FoundKernels[Grouped] = FoundKernels()


def side_of(name: str, rows: Any, scale: Any, kind: str, swizzle: Any, groups: int) -> Side:
    """An operand with its scales; `rows` is one matrix whose rows are grouped, or a stack."""
    rows = row_by_row(f"scaled_grouped_mm: mat_{name}", rows)
    if kind in FORMS:
        return _with_form(name, rows, scale, kind, swizzle)
    types = [str(each.dtype).removeprefix("torch.") for each in (rows, scale)]
    format_ = FORMATS.get((BLOCKS[kind], types[0], types[1]))
    if format_ is None:
        rule = f"mat_{name} and scale_{name} must be of a format with blocks of {BLOCKS[kind]}"
        raise refused(rule, f"{types[0]} and {types[1]}")
    if swizzle not in (SWIZZLED, *PLAIN):
        rule = f"swizzle_{name} must be {SWIZZLED}, or NO_SWIZZLE or None for linear scales"
        raise refused(rule, swizzle)
    *stack, count, k = *rows.shape[:-1], rows.shape[-1] * _packed(rows)
    blocks = -(-k // BLOCKS[kind])
    if swizzle != SWIZZLED:
        wanted = [*stack, count, blocks]
        if list(scale.shape) != wanted:
            raise refused(f"scale_{name} must be {wanted} without a swizzle", list(scale.shape))
        return Side(rows, row_by_row(f"scaled_grouped_mm: scale_{name}", scale), format_)
    if stack:
        shape = [*stack, *blocked_scale_shape(count, blocks)]
        if prod(scale.shape) != prod(shape):
            rule = f"scale_{name} must have {prod(shape)} elements, blocked for each matrix"
            raise refused(rule, prod(scale.shape))
        scale = row_by_row(f"scaled_grouped_mm: scale_{name}", scale)
        return Side(rows, scale.reshape(shape), format_)
    return Side(rows, _atoms(name, scale, count, blocks, groups), format_)


def _atoms(name: str, scale: Any, rows: int, blocks: int, groups: int) -> Any:
    """Atoms of the rows of all groups, as many as any offsets need: with fewer the rest is 0."""
    import torch

    along, *atom = blocked_scale_shape(rows_of_atoms(rows, groups), blocks)
    each, given = prod(atom), prod(scale.shape)
    if given % each:
        rule = (
            f"scale_{name} must be whole rows of atoms, {each} elements each, for {blocks} blocks"
        )
        raise refused(rule, given)
    scale = row_by_row(f"scaled_grouped_mm: scale_{name}", scale)
    lines = scale.reshape(-1)[: along * each].view(torch.uint8)
    if given < along * each:
        why = f"offsets may need {along} rows of atoms; allocate as many"
        warn_of_copy(f"scaled_grouped_mm: scale_{name}", scale, why)
        lines = torch.nn.functional.pad(lines, (0, along * each - given))
    return lines.view(scale.dtype).reshape(along, *atom)


def _with_form(name: str, rows: Any, scale: Any, kind: str, swizzle: Any) -> Side:
    """Scales in f32 of 128 elements of K, viewed as they lie in memory."""
    *stack, count, k = rows.shape
    form, lies = FORMS[kind], blockwise_scale_shape(FORMS[kind], count, k)
    if not stack and form != BLOCKWISE_FORMS[0]:
        rule = f"scale_recipe_{name} must be BlockWise1x128 where its rows are grouped"
        raise refused(rule, f"{kind}; repeat each scale for its rows")
    if swizzle not in PLAIN:
        raise refused(f"swizzle_{name} must be NO_SWIZZLE or None for {kind}", swizzle)
    if str(scale.dtype) != "torch.float32":
        raise refused(f"scale_{name} must be float32 for {kind}", scale.dtype)
    wanted = [*stack, *lies[::-1]]
    if list(scale.shape) != wanted or not scale.mT.is_contiguous():
        rule = f"scale_{name} must be {wanted} for {kind}, its first dim of the last two contiguous"
        raise refused(rule, f"{list(scale.shape)} with strides {list(scale.stride())}")
    return Side(rows, scale.mT, form=form)


def multiply_blocks(a: Side, b: Side, offs: Any, how: How, after: After) -> Any:
    """The product by one kernel; b is a stack, and a one, too, where there are no offsets."""
    _check_alike(a, b)
    if 0 in (*a.rows.shape, *b.rows.shape):
        check_passes(how)
        return _of_nothing(a, b, how)
    kept: list[Any] = []
    sides = tuple(
        (quick_key(each.rows), quick_key(each.scales), each.format, each.form) for each in (a, b)
    )
    key = sides, gpu_of(a.rows), how, offs is None, after.key(kept)
    found = _kernels.of(
        key, lambda: find(_spec(a, b, offs, how), after, how.target, how, kept), kept
    )
    operands = (
        aligned("scaled_grouped_mm: mat_a", a.rows),
        aligned("scaled_grouped_mm: mat_b", b.rows),
    )
    ends = () if offs is None else (offs,)
    return found.returned(
        found.kernel(*operands, a.scales, b.scales, *ends, *after.arguments(found))
    )


def _of_nothing(a: Side, b: Side, how: How) -> Any:
    """The product where a size is 0: no elements, or zeros where it is K."""
    shape = [*a.rows.shape[:-1], b.rows.shape[1]]
    return new_zeros(shape, how.out_dtype or "bf16", a.rows)


def _check_alike(a: Side, b: Side) -> None:
    """Refuse sides that no kernel multiplies."""
    if bool(a.format) != bool(b.format):
        raise refused("both operands must have scales of one kind", "f32 of 128 beside others")
    if a.form and BLOCKWISE_FORMS[0] not in (a.form, b.form):
        rule = "one of scale_recipe_a and scale_recipe_b must be BlockWise1x128"
        raise refused(rule, "BlockWise128x128 twice; spread one to rows")
    layouts = [each.scales.dim() > 3 for each in (a, b)]
    if a.format and len(set(layouts)) > 1:
        raise refused("swizzle_a and swizzle_b must be alike", "linear and blocked")
    if a.depth != b.depth:
        raise refused("mat_a and mat_b must have the same k", f"{a.depth} and {b.depth}")


def _spec(a: Side, b: Side, offs: Any, how: How) -> MatmulSpec:
    groups, n, _ = b.rows.shape
    sizes = a.rows.shape[-2], n, a.depth
    counts = {"groups": groups} if offs is not None else {"batch": groups}
    if a.form:
        types = [operand_type(f"mat_{name}", str(e.rows.dtype)) for name, e in (("a", a), ("b", b))]
        names = types[0], types[1], how.out_dtype or "bf16"
        return MatmulSpec(*sizes, *names, a_scales=a.form, b_scales=b.form, **counts)
    layout = BLOCKED if a.scales.dim() > 3 else LINEAR
    names = a.format, b.format, how.out_dtype or "bf16"
    return MatmulSpec(*sizes, *names, scale_layout=layout, **counts)


def _packed(rows: Any) -> int:
    """Elements in an item of a tensor."""
    return 2 if str(rows.dtype) == "torch.float4_e2m1fn_x2" else 1


def refused(rule: str, got: Any) -> OptionError:
    """What the function does not take, and what it got."""
    return OptionError(f"scaled_grouped_mm: {rule}, got {got}")


def names_of(recipes: Sequence[Any]) -> list[str]:
    """The names of torch's ScalingType, or those that were given."""
    return [getattr(each, "name", str(each)) for each in recipes]

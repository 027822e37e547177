"""An operand of `scaled_mm` with its scales, by torch's recipes: what each is, and its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....dialects.dtypes import (
    BLOCKWISE_FORMS,
    SCALED_FORMATS,
    blocked_scale_shape,
    blocks_refusal,
    blockwise_scale_shape,
)
from ....dialects.errors import OptionError
from ...importers.linalg_text import adds_two_levels, short_sums_rule, sums_are_short
from ...spec import TWO_LEVEL
from .coarse_scales import COARSE, coarse_scales
from .operands import check_tensors
from .placement import row_by_row

TORCH_ELEMENTS = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn_x2"}
TORCH_SCALES = {"ue8m0": "float8_e8m0fnu", "ue4m3": "float8_e4m3fn"}
FORMATS = {  # by elements a scale, and torch's types of the elements and of the scales
    (each.block, TORCH_ELEMENTS[each.element], TORCH_SCALES[each.scale]): each.name
    for each in SCALED_FORMATS.values()
    if each.element in TORCH_ELEMENTS
}
BLOCKS = {"BlockWise1x16": 16, "BlockWise1x32": 32}
FORMS = {f"BlockWise{form}": form for form in BLOCKWISE_FORMS}
ROWS = f"BlockWise{BLOCKWISE_FORMS[0]}"
SWIZZLED = "SWIZZLE_32_4_4"
PLAIN = (None, "NO_SWIZZLE")


class Side(NamedTuple):
    """One operand: its rows [rows, K], and its scales by what they are for.

    factor: for the whole or for each row, shaped for C; None for none. blocks: with their format,
    or with the form in which those of f32 lie.
    """

    rows: Any
    factor: Any = None
    blocks: Any = None
    format: str = ""
    form: str = ""


def sums_of(function: str, target: str, rows: Any, use_fast_accum: bool) -> str:
    """How a spec adds up products of operands like `rows`, whose scales are factors: on two levels
    where the target's own sums of 8-bit floats are short, and may not be."""
    short = sums_are_short(target) and rows.is_floating_point() and rows.itemsize == 1
    if use_fast_accum or not short:
        return ""
    if not adds_two_levels(target):
        raise OptionError(f"{function}: {short_sums_rule(target)}")
    return TWO_LEVEL


def kind_of(recipe: Any) -> str:
    """The name of a recipe, a member of torch.nn.functional.ScalingType."""
    return getattr(recipe, "name", str(recipe))


def are_added(kinds: Sequence[str], scales: Sequence[Any]) -> bool:
    """Whether threads multiply sums of 128 by the scales: of f32, one of each row."""
    types = [str(getattr(each, "dtype", "")) for each in scales]
    return set(kinds) <= set(FORMS) and ROWS in kinds and set(types) == {"torch.float32"}


def side_of(name: str, rows: Any, scales: Any, recipes: Any, swizzles: Any, native: bool) -> Side:
    """An operand [rows, K] with its scales, each of which has its recipe.

    name: "a" or "b", for errors, as which arguments of scaled_mm are wrong. scales, recipes,
    swizzles: as `scaled_mm` takes them. native: whether MMAs of the chip take block scales.

    Raises OptionError for what a recipe does not have.
    """
    scales, recipes = (list(e) if isinstance(e, (list, tuple)) else [e] for e in (scales, recipes))
    swizzles = list(swizzles) if isinstance(swizzles, (list, tuple)) else [swizzles]
    names = [getattr(each, "name", each) for each in swizzles]
    names += [None] * (len(scales) - len(names))
    if len(scales) != len(recipes):
        rule = f"scale_{name} must have a recipe each"
        raise OptionError(f"scaled_mm: {rule}, got {len(scales)} for {len(recipes)} recipes")
    if len(names) > len(scales):
        rule = f"swizzle_{name} must be one for each scale"
        raise OptionError(f"scaled_mm: {rule}, got {len(names)} for {len(scales)}")
    kinds = [kind_of(recipe) for recipe in recipes]
    of_128 = [kind for kind in kinds if kind in FORMS]
    if of_128 and not native and len(kinds) > 1:  # threads multiply by nothing else beside them
        raise _not_taken(name, of_128[0])
    side = Side(rows)
    for scale, kind, swizzle in zip(scales, kinds, names, strict=True):
        check_tensors("scaled_mm", **{f"scale_{name}": scale})
        side = _with_scale(name, side, scale, kind, swizzle, native)
    return side


def _with_scale(name: str, side: Side, scale: Any, kind: str, swizzle: Any, native: bool) -> Side:
    """The operand with one scale more, of a kind that it does not have yet."""
    if kind in BLOCKS and not side.format:
        return _with_blocks(name, side, scale, BLOCKS[kind], swizzle)
    if kind in COARSE and native and not side.format:
        blocks = coarse_scales(name, side.rows, scale, COARSE[kind], swizzle in PLAIN)
        return side._replace(blocks=blocks, format=COARSE[kind].name)
    if kind in FORMS and not native:
        return _with_form(name, side, scale, kind, swizzle)
    if kind in ("TensorWise", "RowWise") and side.factor is None:
        return _with_factor(name, side, scale, kind, swizzle)
    raise _not_taken(name, kind)


def _not_taken(name: str, kind: str) -> OptionError:
    rule = "must be TensorWise, RowWise or BlockWise1x16, 1x32, 1x128 or 128x128, each once"
    return OptionError(f"scaled_mm: scale_recipe_{name} {rule}, got {kind}")


def _with_factor(name: str, side: Side, scale: Any, kind: str, swizzle: Any) -> Side:
    """The operand with an f32 that C is multiplied by: [], [m, 1] or [1, n]."""
    if swizzle not in PLAIN:
        rule = f"swizzle_{name} must be NO_SWIZZLE or None for {kind}"
        raise OptionError(f"scaled_mm: {rule}, got {swizzle}")
    if str(scale.dtype) != "torch.float32":
        raise OptionError(f"scaled_mm: scale_{name} must be float32, got {scale.dtype}")
    if kind == "TensorWise":
        wanted: list[int] = []
        fits = scale.numel() == 1
    else:
        rows = side.rows.shape[0]
        wanted = [rows, 1] if name == "a" else [1, rows]
        fits = list(scale.shape) == wanted
    if not fits:
        raise OptionError(
            f"scaled_mm: scale_{name} must be {wanted} for {kind}, got {list(scale.shape)}"
        )
    return side._replace(factor=scale.reshape(wanted))


def _with_blocks(name: str, side: Side, scale: Any, block: int, swizzle: Any) -> Side:
    """The operand with scales of blocks: atoms [rows/128, blocks/4, 32, 4, 4], or [rows, blocks].

    A plain tensor must have the shape of its scales: atoms may have as many elements.
    """
    types = [str(each.dtype).removeprefix("torch.") for each in (side.rows, scale)]
    format_ = FORMATS.get((block, types[0], types[1]))
    if format_ is None:
        rule = f"mat_{name} and scale_{name} must be of a format with blocks of {block}"
        raise OptionError(f"scaled_mm: {rule}, got {types[0]} and {types[1]}")
    if swizzle not in (SWIZZLED, *PLAIN):
        rule = f"swizzle_{name} must be {SWIZZLED}, or NO_SWIZZLE or None for linear scales"
        raise OptionError(f"scaled_mm: {rule}, got {swizzle}")
    packed = 2 if types[0] == "float4_e2m1fn_x2" else 1
    rows, blocks = side.rows.shape[0], -(-side.rows.shape[1] * packed // block)
    broken = blocks_refusal(name, list(scale.shape), rows, blocks, swizzle == SWIZZLED)
    if broken is not None:
        raise OptionError(f"scaled_mm: {broken}")
    held = row_by_row(f"scaled_mm: scale_{name}", scale)
    if swizzle == SWIZZLED:
        held = held.reshape(blocked_scale_shape(rows, blocks))
    return side._replace(blocks=held, format=format_)


def _with_form(name: str, side: Side, scale: Any, kind: str, swizzle: Any) -> Side:
    """The operand with scales in f32 of 128 elements of K, viewed as they lie in memory."""
    rows, k = side.rows.shape
    form, lies = FORMS[kind], list(blockwise_scale_shape(FORMS[kind], rows, k))
    if swizzle not in PLAIN:
        raise OptionError(
            f"scaled_mm: swizzle_{name} must be NO_SWIZZLE or None for {kind}, got {swizzle}"
        )
    if str(scale.dtype) != "torch.float32":
        raise OptionError(f"scaled_mm: scale_{name} must be float32, got {scale.dtype}")
    shape, strides = list(scale.shape), list(scale.stride()) if scale.dim() else []
    steps = [step for step, extent in zip(strides, shape, strict=True) if extent > 1]
    wanted = [step for step, extent in zip([1, lies[1]], lies[::-1], strict=True) if extent > 1]
    if shape != lies[::-1] or (0 not in shape and steps != wanted):
        rule = f"scale_{name} must be {lies[::-1]} with strides [1, {lies[1]}] for {kind}"
        cure = "lay it out so" if shape == lies[::-1] else "pad it so, and pass its transpose"
        raise OptionError(f"scaled_mm: {rule}, got {shape} with {strides}; {cure}")
    return side._replace(blocks=scale.T, form=form)

"""Checks of products with f32 scales of 128 elements of K.

scales      are the views after a and b, each as its form says, or vectors that are loaded from
            them; an MMA multiplies the tiles at its places, of its own tile and of a step of K
steps       each MMA into sums is of the step after that of the one before, whose threads have
            asked for its scales
"""

from __future__ import annotations

from typing import Any

from ....dialects.dtypes import blockwise_scale_shape
from ....dialects.mlir import ir, scf
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.scales import SCALED_MMAS
from ....dialects.tile.weights import WeightMmaOp
from ...base import is_swapped, refused, walk
from ...batches import argument_of
from ...clone import iterations_of
from ...indices import linear_form, place_of


def check_blockwise_mma(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether threads add the products, and read the scales of its tiles."""
    if not target.adds_products or target.mma.splits:
        unit = target.added_mma
        wanted = "an MMA whose products threads add" if unit is None else unit.name
        rule = f"scales: {wanted} adds products times scales, got {target.mma.name}"
        raise refused(op, f"{rule}; run tiling for it")
    for number, name in enumerate("ab"):
        _check_view(kernel, op, number, name)
    for axis, name in enumerate("ij"):
        index = getattr(op, name)
        form = linear_form(index)
        if form is None or not form.is_just(index) or place_of(index) != axis:
            where = "MN"[axis]
            rule = f"scales: {name} must be the {where} place of its tile, got another index"
            raise refused(op, f"{rule}; take the store's")


def check_steps(kernel: KernelOp) -> None:
    """Whether the steps of K of each accumulator follow one another."""
    following: dict[ir.Value, int] = {}
    for op in walk(kernel, (*BLOCKWISE_MMAS, WeightMmaOp, *SCALED_MMAS)):
        loop, form = op.operation.parent.opview, linear_form(op.k)
        steps = iterations_of(loop) if isinstance(loop, scf.ForOp) else None
        counter = loop.induction_variable if isinstance(loop, scf.ForOp) else None
        counted = form is not None and form.factors.get(counter, 0) == 1  # pyright: ignore
        first = None if form is None else form.constant + (steps[0] if steps and counted else 0)
        wanted = following.get(op.acc, first)
        if first is None or first != wanted or (steps and (steps.step != 1 or not counted)):
            rule = "steps: K steps must follow one another, each by one"
            raise refused(op, f"{rule}, got another order; count K by the loop around")
        following[op.acc] = first + (len(steps) if steps else 1)


def _check_view(kernel: KernelOp, op: Any, number: int, name: str) -> None:
    scales, form = getattr(op, f"{name}_scales"), getattr(op, f"{name}_form").value
    arguments = list(kernel.body.blocks[0].arguments)
    number = 1 - number if is_swapped(kernel) else number
    operand: Any = ir.MemRefType(arguments[number].type)
    type_ = ir.MemRefType(arguments[2 + number].type)
    if isinstance(scales.type, ir.MemRefType):
        type_ = scales.type
        if argument_of(scales) != arguments[2 + number]:
            rule = f"scales: {name}_scales must be those of {name}"
            raise refused(op, f"{rule}, got others; swap them")
    rows, k = list(operand.shape)[-2:]
    wanted = blockwise_scale_shape(form, rows, k)
    strides, _ = type_.get_strides_and_offset()
    if tuple(type_.shape)[-2:] != wanted or list(strides)[-2:] != [wanted[1], 1]:
        shown = "x".join(map(str, wanted))
        rule = f"scales: {name}_scales must be {shown} for {form}, one row after the other"
        raise refused(op, f"{rule}, got {type_}")

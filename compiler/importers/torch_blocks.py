"""torch's operands with block scales, as operators that torch_mlir imports.

    _scaled_mm_v2 by BlockWise1x32, BlockWise1x16    →    elements of f32 times the scales of their
                                                          blocks, which views spread

`normalize` finds the scales again. Elements of four bits, of which torch counts bytes, have no
operators: an input of them is exported as one of `STAND_IN`, which no MMA takes, by its elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...dialects.dtypes import (
    SCALE_ATOM_BLOCKS,
    SCALE_ATOM_ROWS,
    blocked_scale_shape,
    blocks_refusal,
)
from ...dialects.errors import CompileError

BY_BLOCKS = {2: 16, 3: 32}
"""Elements a scale, by the number of ScalingType (ATen/BlasBackend.h of torch 2.13)."""
PACKED, STAND_IN = torch.float4_e2m1fn_x2, torch.float8_e4m3fnuz
STAND_INS = ("f8E4M3FNUZ", "f4E2M1FN")
"""Of the elements' types in MLIR, what stands there and what is meant."""
SCALES = {16: torch.float8_e4m3fn, 32: torch.float8_e8m0fnu}
ELEMENTS = {16: (STAND_IN,), 32: (STAND_IN, torch.float8_e4m3fn, torch.float8_e5m2)}


def spread(name: str, rows: Any, scale: Any, block: int, swizzled: bool) -> Any:
    """An operand [rows, K] in f32, each element times the scale of its block."""
    if scale.dtype != SCALES[block] or rows.dtype not in ELEMENTS[block]:
        rule = f"mat_{name} and scale_{name} must be of a format with blocks of {block}"
        got = "float4_e2m1fn_x2" if rows.dtype == STAND_IN else rows.dtype
        raise CompileError(f"scaled_mm: {rule}, got {got} and {scale.dtype}")
    count, depth = rows.shape
    if depth % block:
        rule = f"K must be a multiple of the {block} elements that share a scale"
        raise CompileError(f"scaled_mm: {rule}, got {depth}; pad K")
    blocks = depth // block
    broken = blocks_refusal(f"{name}", list(scale.shape), count, blocks, swizzled)
    if broken is not None:
        raise CompileError(f"scaled_mm: {broken}")
    linear = _linear(scale, count, blocks) if swizzled else scale.float()
    linear = linear.abs() if block == 16 else linear  # nobody reads their sign
    wide = rows.float().reshape(count, blocks, block) * linear.unsqueeze(-1)
    return wide.reshape(count, depth)


def _linear(scale: Any, rows: int, blocks: int) -> Any:
    """f32 [rows, blocks] of the scales in atoms."""
    atoms = scale.reshape(blocked_scale_shape(rows, blocks)).float()
    shape = atoms.shape[0] * SCALE_ATOM_ROWS, atoms.shape[1] * SCALE_ATOM_BLOCKS
    return atoms.permute(0, 3, 2, 1, 4).reshape(shape)[:rows, :blocks]


SCALED_MM: Any = None
"""The product with recipes, which torch 2.9 does not have."""
if hasattr(torch, "_scaled_mm_v2"):
    SCALED_MM = torch.ops.aten._scaled_mm_v2.default


class BlocksBeforeExport(TorchFunctionMode):
    """Takes products by blocks before torch asks for their shapes: of mxfp4 it asks for half as
    many scales as there are, and of linear scales for atoms (torch/_meta_registrations.py)."""

    def __init__(self, product: Callable[..., Any] | None) -> None:
        super().__init__()
        self.product = product

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        is_one = SCALED_MM is not None and function in (torch._scaled_mm_v2, SCALED_MM)
        if is_one and set(BY_BLOCKS) & {*args[3], *args[6]}:
            function = self.product
        return function(*args, **(kwargs or {}))


def by_elements(values: Sequence[Any]) -> tuple[Any, ...]:
    """Examples for torch.export, those of four bits by their elements."""
    if any(each.dtype == STAND_IN for each in values):
        return tuple(values)
    return tuple(_by_elements(each) if each.dtype == PACKED else each for each in values)


def _by_elements(packed: torch.Tensor) -> torch.Tensor:
    """A view with two elements per byte, along the contiguous dim."""
    dense = next((dim for dim in range(packed.dim())[::-1] if packed.stride(dim) == 1), -1)
    shape = [2 * size if dim == dense else size for dim, size in enumerate(packed.shape)]
    strides = [each if each == 1 else 2 * each for each in packed.stride()]
    size = 1 + sum((count - 1) * each for count, each in zip(shape, strides, strict=True))
    whole = torch.zeros(max(size, math.prod(shape)), dtype=torch.uint8, device=packed.device)
    return whole.view(STAND_IN).as_strided(shape, strides)

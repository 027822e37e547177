"""The tiles of terms that an MMA reads instead of f32 tiles (`dialects.terms`)."""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.target import Target
from ..dialects.terms import TermForm, term_layout
from ..dialects.tile import KernelOp, MmaOp
from ..dialects.tile.scales import smem_operands
from ..dialects.tile_types import SmemType
from .base import walk


def terms_of(op: Any, form: TermForm) -> tuple[SmemType, ...]:
    """The types of all terms of an MMA's operands that lie in shared memory, those of A first."""
    element, tiles = ir.Type.parse(form.dtype.mlir), smem_operands(op)
    layouts = [term_layout(tile.type.layout, form) for tile in (tiles if form.of_a else tiles[1:])]
    return tuple(SmemType.of(layout, element) for layout in layouts for _ in range(form.terms))


def kernel_term_bytes(kernel: KernelOp, target: Target) -> int:
    """Shared memory that the terms of a kernel's operands take, if threads split them."""
    form = target.mma.splits
    if form is None:
        return 0
    (op,) = walk(kernel, MmaOp)[:1]
    return form.slots * sum(each.layout.slot_bytes for each in terms_of(op, form))

"""The tiles of bf16 terms that an MMA reads in the place of f32 tiles (`dialects.terms`)."""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.terms import TERM_DTYPE, TERM_SLOTS, TERMS, term_layout
from ..dialects.tile import KernelOp, MmaOp
from ..dialects.tile_scales import smem_operands
from ..dialects.tile_types import SmemType
from .base import walk


def terms_of(op: Any) -> tuple[SmemType, ...]:
    """The types of all terms of an MMA's operands, those of A first."""
    element = ir.Type.parse(TERM_DTYPE.mlir)
    layouts = [term_layout(tile.type.layout) for tile in smem_operands(op)]
    return tuple(SmemType.of(layout, element) for layout in layouts for _ in TERMS)


def kernel_term_bytes(kernel: KernelOp) -> int:
    """Shared memory that the terms of a kernel's operands take."""
    (op,) = walk(kernel, MmaOp)[:1]
    return TERM_SLOTS * sum(each.layout.slot_bytes for each in terms_of(op))

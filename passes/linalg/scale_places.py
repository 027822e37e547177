"""The layout of scales, derived from the indices by which a linalg op reads them.

The place that an index names is held to the formula of each layout at every row and every element
of K, however the index is written.
"""

from __future__ import annotations

from typing import Any

from ...dialects.dtypes import (
    BLOCKWISE,
    BLOCKWISE_FORMS,
    COARSE_FORMATS,
    SCALED_FORMATS,
    blocked_scale_shape,
    blockwise_scale_shape,
    scale_dtype,
)
from ...dialects.mlir import ir
from ...dialects.record import record
from ..base import refused
from .affine import Formula, dims_of, function_of
from .trace_views import Index

BLOCK_OF = {each.scale: each.block for each in SCALED_FORMATS.values()}


@record
class Factor:
    """An argument of the function that a product multiplies, at the place that `index` names.

    `op` is the one that multiplies, `steps` the ops that its elements go through, the last first.
    """

    value: ir.Value
    index: Index
    op: Any
    steps: tuple[str, ...] = ()

    @property
    def loops(self) -> set[int]:
        """The loops that it is indexed by."""
        return {dim for each in self.index for dim in dims_of(each)}

    @property
    def type(self) -> ir.RankedTensorType:
        return ir.RankedTensorType(self.value.type)

    @property
    def at(self) -> str:
        """The index of the factor as MLIR prints it."""
        return f"({', '.join(map(str, self.index))})"


def block_of(name: str, scale: Factor, depth: int) -> int:
    """The elements of K that share a scale, which its type says."""
    dtype = scale_dtype(str(scale.type.element_type))
    if dtype is None:
        rule = f"scales of {name} must be f8E8M0FNU, of 32 elements each, or f8E4M3FN, of 16"
        raise refused(scale.op, f"{rule}, got {scale.type.element_type}; convert them")
    block = BLOCK_OF[dtype.name]
    if depth % block:
        rule = f"K must be a multiple of the {block} elements of a block"
        raise refused(scale.op, f"{rule}, got {depth}; pad K")
    return block


def form_of(
    name: str, scale: Factor, loops: tuple[int, int], extents: tuple[int, int], stack: int
) -> str:
    """How scales of f32 lie: indexed so at every row and element of K, and as many."""
    index = scale.index[stack:]
    layouts = dict(zip(BLOCKWISE_FORMS, (_OF_ROWS, _OF_SQUARES), strict=True))
    found = [form for form, of in layouts.items() if _is_at(index, of, loops, extents, BLOCKWISE)]
    fitting = [
        form
        for form in found
        if tuple(scale.type.shape[stack:]) == blockwise_scale_shape(form, *extents)
    ]
    if fitting:
        return fitting[0]
    (mn, k), (rows, depth) = loops, extents
    kb = f"d{k} floordiv {BLOCKWISE}"
    at = {"1x128": f"({kb}, d{mn})", "128x128": f"(d{mn} floordiv {BLOCKWISE}, {kb})"}
    takes = " or ".join(
        f"{list(blockwise_scale_shape(form, rows, depth))} at {place}" for form, place in at.items()
    )
    rule = f"scales of f32 of {name} must be {takes}"
    got = f"{list(scale.type.shape)} at {scale.at}"
    raise refused(scale.op, f"{rule}, got {got}; lay them out so")


def check_place(
    name: str,
    scale: Factor,
    loops: tuple[int, int],
    extents: tuple[int, int],
    block: int,
    stack: int,
) -> None:
    """Whether the scales are those of blocks: indexed so at every row and element, and as many.

    `stack` dims in front count matrices.
    """
    rows, blocks = extents[0], extents[1] // block
    layouts: dict[str, Any] = {"linear": _LINEAR, "blocked": _BLOCKED}
    shapes = {"linear": (rows, blocks), "blocked": blocked_scale_shape(rows, blocks)}
    for each in COARSE_FORMATS.values():
        if each.block == block and blocks % each.blocks == 0:
            layouts[each.name] = _shared(each.rows, each.blocks)
            shapes[each.name] = -(-rows // each.rows), blocks // each.blocks
    index = scale.index[stack:]
    found = [each for each, of in layouts.items() if _is_at(index, of, loops, extents, block)]
    if not found:
        mn, k = loops
        kb = f"d{k} floordiv {block}"
        atoms = f"d{mn} floordiv 128, d{k} floordiv {4 * block}, d{mn} mod 32, (d{mn} floordiv 32)"
        rule = f"scales of {name} must be indexed (d{mn}, {kb}), or as atoms ({atoms} mod 4, ({kb})"
        raise refused(scale.op, f"{rule} mod 4), got {scale.at}; index them so")
    shape = shapes[found[0]]
    if tuple(scale.type.shape[stack:]) != shape:
        got = f"{list(scale.type.shape)} for {rows} rows of {blocks} blocks"
        raise refused(scale.op, f"{found[0]} scales of {name} must be {list(shape)}, got {got}")


def _shared(rows: int, blocks: int) -> tuple[tuple[int, Formula], ...]:
    """The place of a scale that so many rows and blocks share."""
    return (0, lambda row: row // rows), (1, lambda block: block // blocks)


_OF_ROWS: tuple[tuple[int, Formula], ...] = ((1, lambda block: block), (0, lambda row: row))
_OF_SQUARES: tuple[tuple[int, Formula], ...] = (
    (0, lambda row: row // 128),
    (1, lambda block: block),
)
_LINEAR: tuple[tuple[int, Formula], ...] = ((0, lambda row: row), (1, lambda block: block))
_BLOCKED: tuple[tuple[int, Formula], ...] = (
    (0, lambda row: row // 128),
    (1, lambda block: block // 4),
    (0, lambda row: row % 32),
    (0, lambda row: row // 32 % 4),
    (1, lambda block: block % 4),
)
"""The place of the scale of a row and a block (cuBLAS, block scaling factors layout)."""


def _is_at(
    index: Index,
    layout: tuple[tuple[int, Formula], ...],
    loops: tuple[int, ...],
    extents: tuple[int, int],
    block: int,
) -> bool:
    """Whether each part of an index is what the layout says, for all values of its loop."""
    if len(index) != len(layout):
        return False
    for expression, (side, formula) in zip(index, layout, strict=True):
        if not dims_of(expression) <= {loops[side]}:
            return False
        value, step = function_of(expression), (1, block)[side]
        if any(value(i) != formula(i // step) for i in range(extents[side])):
            return False
    return True

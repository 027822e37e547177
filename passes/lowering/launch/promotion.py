"""The L2 promotion of a tensor map: how much of a row L2 requests from DRAM at once.

    one line     128 bytes, where several CTAs read the operand, or rows start inside lines
    two lines    256 bytes, where CTAs read it once: the other operand has a single tile

An H100 ran products of few rows up to 5 % faster with two lines where a tile has 128 bytes of a
row, and as fast where it has 256. With rows that start inside lines they took up to 9 % longer.
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import MMAS, KernelOp, TensorMapOp
from ....dialects.tile_types import DYNAMIC, extent_of
from ...base import is_swapped, walk
from ...duals import arguments_of_b, operand_names
from ...dynamic_rows import row_bounds

ONE_LINE, TWO_LINES = "128B", "256B"
LINE_BYTES = 128


def promotion(kernel: KernelOp, tensor: str, op: TensorMapOp) -> str:
    """What the map of a tensor says."""
    mmas = walk(kernel, MMAS)
    if tensor not in operand_names(kernel) or not mmas:
        return ONE_LINE
    is_a = tensor == "a"
    alike = _major(kernel, mmas[0], is_a) == "k" and _starts_with_lines(op)
    return TWO_LINES if alike and _read_once(kernel, mmas[0], is_a) else ONE_LINE


def _major(kernel: KernelOp, mma: Any, is_a: bool) -> str:
    operand = mma.a if is_a != is_swapped(kernel) else mma.b
    return operand.type.layout.major


def _starts_with_lines(op: TensorMapOp) -> bool:
    return all(each > 0 and each % LINE_BYTES == 0 for each in op.map.type.strides)


def _read_once(kernel: KernelOp, mma: Any, is_a: bool) -> bool:
    """Whether the other operand has no more rows than a tile."""
    m, n = reversed(mma.acc.type.shape) if is_swapped(kernel) else mma.acc.type.shape
    bs = arguments_of_b(kernel)
    if is_a:
        return _rows(kernel, bs[0]) <= n // len(bs)
    return _rows(kernel, 0) <= m


def _rows(kernel: KernelOp, number: int) -> int:
    """Rows of an argument, at most."""
    type_ = ir.MemRefType(kernel.body.blocks[0].arguments[number].type)
    rows = extent_of(type_, type_.rank - 2)
    return row_bounds(kernel)[1] if rows == DYNAMIC else rows

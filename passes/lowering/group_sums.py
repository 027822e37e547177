"""What threads make of groups of neighbours in a row, each of which is one element of an output."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ...dialects import sm
from ...dialects.mlir import ir, llvm, vector
from ...dialects.tile_outputs import WriteGroupOp
from ...dialects.tile_quantized import QuantizeValuesOp
from ...dialects.verify import products_of
from .. import build
from .elements import element_pointer, read_elements, slice_of
from .rows import value_groups
from .scalar_ops import apply_epilogue
from .scope import Scope

WIDTH = 4  # elements that the epilogue takes at a time


def lower_write_group(_: Scope, op: WriteGroupOp) -> None:
    """One store."""
    width = op.view.type.shape[1]
    offset = build.widen(op.row) * width + build.widen(op.column // op.group.value)
    llvm.store(op.value, element_pointer(op.view, offset), alignment=4)


def read_width(op: QuantizeValuesOp, columns: int) -> int:
    """Neighbours that the epilogue computes together: a row of C is a whole number of them."""
    return math.gcd(WIDTH, op.neighbours.value, columns)


def elements_of(op: QuantizeValuesOp, inside: ir.Value, columns: int) -> list[tuple[int, ir.Value]]:
    """(column behind the thread's first, value) of what the epilogue makes of the sums.

    `inside` says whether C has the row, and it has so many columns.
    """
    width, found = read_width(op, columns), []
    for first, sums in value_groups(op, products_of(op)):
        for start in range(0, op.neighbours.value, width):
            at = op.column + (first + start)
            there = build.both(inside, build.less(at, columns))
            read = partial(read_elements, op.row, at, width, there)
            values = [slice_of(each, start, width) for each in sums]
            made = apply_epilogue(op, values, width, read)
            for number in range(width):
                value = made if width == 1 else vector.ExtractOp(made, [], [number]).result
                found.append((first + start + number, value))
    return found


def over_lanes(value: ir.Value, lanes: int, join: Callable[..., ir.Value]) -> ir.Value:
    """What neighbouring lanes have, so many, joined in each of them."""
    for apart in (1 << bit for bit in range(lanes.bit_length() - 1)):
        other = sm.ShuffleOp.of(value=value, apart=apart, result=value.type).result
        value = join(value, other)
    return value


def magnitude(value: ir.Value) -> ir.Value:
    return ir.Operation.create("math.absf", results=[value.type], operands=[value]).result

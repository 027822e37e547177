"""What threads make of groups of neighbours in a row, each of which is one element of an output."""

from __future__ import annotations

import math
from functools import partial

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm, vector
from ...dialects.tile_outputs import WriteGroupsOp
from ...dialects.tile_types import extent_of
from .. import build
from ..team import Team
from .elements import element_pointer, read_elements, slice_of
from .rows import value_groups
from .scalar_ops import apply_epilogue
from .scope import Scope

WIDTH = 4  # elements that the epilogue takes at a time


def lower_write_groups(scope: Scope, op: WriteGroupsOp) -> None:
    """In a thread from the first column to the last, then over lanes 1 and 2 apart."""
    group, columns, lanes = op.group.value, op.columns.value, op.every.value // op.neighbours.value
    inside = build.less(op.row, scope.extent(extent_of(op.view.type, 0)))
    found: dict[int, ir.Value] = {}
    for start, value in _elements(op, inside):
        number = start // group
        found[number] = value if number not in found else _combined(op, found[number], value)
    for number, value in found.items():
        for apart in (1 << bit for bit in range(lanes.bit_length() - 1)):
            other = sm.ShuffleOp.of(value=value, apart=apart, result=value.type).result
            value = _combined(op, value, other)
        first = op.column + number * group
        stores = build.both(inside, build.less(first, columns))
        if lanes > 1:
            stores = build.both(stores, build.equal(Team.of(op).lane % lanes, 0))
        with build.when(stores):
            width = op.view.type.shape[1]
            offset = build.widen(op.row) * width + build.widen(first // group)
            llvm.store(value, element_pointer(op.view, offset), alignment=4)


def read_width(op: WriteGroupsOp) -> int:
    """Neighbours that the epilogue computes together: a row of C is a whole number of them."""
    return math.gcd(WIDTH, op.neighbours.value, op.columns.value)


def _elements(op: WriteGroupsOp, inside: ir.Value) -> list[tuple[int, ir.Value]]:
    """(column behind the thread's first, value) of what the epilogue makes of the sums."""
    width, columns, found = read_width(op), op.columns.value, []
    for first, (values,) in value_groups(op, 1):
        for start in range(0, op.neighbours.value, width):
            at = op.column + (first + start)
            there = build.less(at, columns)
            read = partial(read_elements, op.row, at, width, build.both(inside, there))
            made = apply_epilogue(op, [slice_of(values, start, width)], width, read)
            for number in range(width):
                value = made if width == 1 else vector.ExtractOp(made, [], [number]).result
                value = _magnitude(value) if op.reduce.value == "amax" else value
                if columns % op.group.value:  # else a group lies wholly inside or outside
                    value = arith.select(there, value, _zero())
                found.append((first + start + number, value))
    return found


def _combined(op: WriteGroupsOp, a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.maximumf(a, b) if op.reduce.value == "amax" else arith.addf(a, b)


def _magnitude(value: ir.Value) -> ir.Value:
    return ir.Operation.create("math.absf", results=[value.type], operands=[value]).result


def _zero() -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), 0.0).result

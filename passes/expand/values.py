"""Applies the epilogue to the values that a thread holds, some neighbours at a time.

%outputs = tile.apply_to_row %values, %c, %row, %column     f of up to four neighbours
arith, sm.shuffle                                           of them, in a thread and over lanes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...dialects import sm
from ...dialects.mlir import ir, vector
from ...dialects.record import record
from ...dialects.sm.types import attribute_of
from ...dialects.tile.threads import ApplyToRowOp
from ...dialects.verify import products_of
from ..build import both, equal, less
from ..clone import copy_region
from ..team import Team
from .rows import runs

WIDTH = 4  # elements that the epilogue takes at a time


@record
class RowPart:
    """What a thread has of a row: groups of `near` neighbours, each `every` columns after the one
    before. Lanes beside it have those between.

    `to` is the output that is made of it, `columns` those of C, and `inside` says whether C has the
    row.
    """

    store: Any
    to: ir.Value
    values: ir.Value
    row: ir.Value
    column: ir.Value
    near: int
    every: int
    columns: int
    inside: ir.Value

    @property
    def lanes(self) -> int:
        """Neighbouring lanes that share the row."""
        return self.every // self.near

    @property
    def width(self) -> int:
        """Neighbours that the epilogue takes together: a row of C is a whole number of them."""
        return math.gcd(WIDTH, self.near, self.columns)

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """(number of the first value, columns after the thread's first) of each of them."""
        count = ir.VectorType(self.values.type).shape[0] // products_of(self.store)
        return runs(count, self.near, self.every, self.width)

    def elements(self) -> list[tuple[int, ir.Value]]:
        """(column after the thread's first, value) of what the epilogue makes of the sums."""
        found = []
        for first, behind in self.runs:
            made = self._apply(first, self.column + behind)
            for number in range(self.width):
                value = vector.ExtractOp(made, [], [number]).result
                found.append((behind + number, value))
        return found

    def _apply(self, first: int, column: ir.Value) -> ir.Value:
        made = ApplyToRowOp(
            values=self.values,
            to=self.to,
            row=self.row,
            column=column,
            inside=both(self.inside, less(column, self.columns)),
            first=attribute_of(first),
            width=attribute_of(self.width),
            outputs=ir.VectorType.get([self.width], ir.F32Type.get()),
        )
        copy_region(self.store.epilogue, made.epilogue)
        return made.outputs

    def over_lanes(self, value: ir.Value, join: Callable[..., ir.Value]) -> ir.Value:
        """What the lanes that share the row have, joined in each of them."""
        for apart in (1 << bit for bit in range(self.lanes.bit_length() - 1)):
            other = sm.ShuffleOp.of(value=value, apart=apart, result=value.type).result
            value = join(value, other)
        return value

    def first_lane(self) -> ir.Value | None:
        """Whether this lane is the first of those; None where it has the row alone."""
        return equal(Team.of(self.store).lane % self.lanes, 0) if self.lanes > 1 else None


def magnitude(value: ir.Value) -> ir.Value:
    """The value without its sign."""
    return ir.Operation.create("math.absf", results=[value.type], operands=[value]).result

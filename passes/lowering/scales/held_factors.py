"""Scales of a product that threads hold until they accumulate it.

A thread has two rows and pairs of every 8 columns. Of either side it holds one scale where all of
a tile's lines share it, else one for each line; of columns whose scales are of 128 lines, one for
each 8 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....dialects.dtypes import BLOCKWISE
from ....dialects.mlir import arith, ir
from ....dialects.tile.blockwise import BlockwiseMmaOp, BlockwisePairMmaOp
from ... import build
from ..scope.scope import Scope
from .block_factors import scales_of, starts_of
from .block_scales import Scales, Vector

Side = Scales | Vector


class HeldFactors(NamedTuple):
    """The number of the scale that is held for a row, and for a column, after a thread's first."""

    rows: dict[int, int]
    columns: dict[int, int]

    @staticmethod
    def of(scope: Scope, mma: BlockwiseMmaOp | BlockwisePairMmaOp) -> HeldFactors:
        rows, columns = (_numbers(side) for side in scales_of(scope, mma))
        return HeldFactors(rows, columns)

    @property
    def count(self) -> int:
        """Scales that are held, those of rows first."""
        return self._of_rows + 1 + max(self.columns.values())

    @property
    def _of_rows(self) -> int:
        return 1 + max(self.rows.values())

    def factor(self, held: Sequence[ir.Value]) -> Callable[[int, int], ir.Value]:
        """What gives the factor of an element by its row and column after the thread's first."""
        made: dict[tuple[int, int], ir.Value] = {}

        def of(row: int, column: int) -> ir.Value:
            key = self.rows[row], self.columns[column]
            if key not in made:
                made[key] = arith.mulf(held[key[0]], held[self._of_rows + key[1]])
            return made[key]

        return of


def factors_of_step(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> list[ir.Value]:
    """The scales of a step, in the order in which they are held."""
    block = build.as_i32(op.k) // (BLOCKWISE // op.a.type.layout.k)
    found: list[ir.Value] = []
    for side, start in zip(scales_of(scope, op), starts_of(scope, op), strict=True):
        lines = side.read(start) if isinstance(side, Vector) else None
        if lines is None:
            assert isinstance(side, Scales)
            lines = side.spread(start, side.read(start, block))
        numbered = {number: lines[line] for line, number in _numbers(side).items()}
        found += [numbered[number] for number in sorted(numbered)]
    return found


def _numbers(side: Side) -> dict[int, int]:
    """The number of its scale by line."""
    every = [line + at for line in side.lines for at in range(side.width)]
    if side.is_one:
        return dict.fromkeys(every, 0)
    if side.of_each or side.width == 1:
        return {line: number for number, line in enumerate(every)}
    return {line: number // side.width for number, line in enumerate(every)}

"""`tile.level_mma` as wgmma: as wide as the tiles of its group are high.

The N of a wgmma is a part of the instruction, so there is a loop along K for each width
(`unswitch`). A branch inside the loop lets ptxas serialize the MMAs.
"""

from __future__ import annotations

from ....dialects.tile.level import LEAST_ROWS, NarrowMmaOp
from ..scope.scope import Scope
from .mma import multiply_columns


def widths_of(columns: int, unit: int) -> list[int]:
    """The widths that there are MMAs of."""
    least = min(columns, -(-LEAST_ROWS // unit) * unit)
    return [*range(least, columns, unit), columns]


def lower_narrow_wgmma(scope: Scope, op: NarrowMmaOp) -> None:
    """Multiply into the first columns of the sums."""
    multiply_columns(scope, op, op.columns.value)

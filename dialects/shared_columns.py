"""An accumulator ring of one slot that lies in two places of tensor memory in turn.

    even tiles   |  own columns  |  shared  |
    odd tiles                    |  shared  |  own columns  |

The consumer releases the slot once it has read the columns that both places share. While it reads
the others, MMAs of the next tile write to the other place. Published kernels do the same (CUTLASS,
block-scaled tiles of 256 columns).
"""

from __future__ import annotations

from typing import Any

from .mlir import ir
from .tile_types import AccumulatorType
from .verify import refuse

SHARED = "shared_columns"
"""On `pipe.create` and `sm.columns`: columns of tensor memory that both places have."""
PLACES = 2


def shared_of(op: Any) -> int:
    """Columns that the two places of a ring's slot share, 0 where it has one place; of its
    `pipe.create` or its `sm.columns`."""
    attributes = op.operation.attributes
    return ir.IntegerAttr(attributes[SHARED]).value if SHARED in attributes else 0


def verify_shared(create: Any, stages: int, tiles: list[ir.Type]) -> bool:
    """Whether a ring that says so holds one accumulator of more columns than are shared."""
    if SHARED not in create.operation.attributes:
        return True
    (type_, *_), said = tiles, create.operation.attributes[SHARED]
    columns = type_.shape[1] if isinstance(type_, AccumulatorType) else 0
    known = ir.IntegerAttr(said).value if isinstance(said, ir.IntegerAttr) else 0
    if stages == 1 and 1 <= known < columns:
        return True
    rule = f"{SHARED} must be columns of the one accumulator of one slot, fewer than all {columns}"
    return refuse(create, f"{rule}, got {said} of {stages} slots")

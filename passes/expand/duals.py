"""Reads of the two accumulators of a dual product, some columns apart.

one product     %values = tile.read_row %sums, %start
two             %first, %second = tile.read_row %sums, %start and %start + columns of C's tile
                %values = tile.join %first, %second
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile.duals import JoinOp
from ...dialects.verify import products_of, tile_of_c
from ..build import constant
from ..clone import constant_of


def starts_of(store: Any, start: ir.Value, apart: int | None = None) -> list[ir.Value]:
    """Where what begins at a column of C's tile begins in the sums of each product.

    They are `apart`, by default by the columns of the tile.
    """
    _, n = tile_of_c(store)
    step = n if apart is None else apart
    return [moved(start, number * step) for number in range(products_of(store))]


def joined(values: list[ir.Value]) -> ir.Value:
    """The values of one or two products as one vector."""
    if len(values) == 1:
        return values[0]
    first, second = values
    part = ir.VectorType(first.type)
    whole = ir.VectorType.get([2 * part.shape[0]], part.element_type)
    return JoinOp(first=first, second=second, values=whole).values


def moved(start: ir.Value, columns: int) -> ir.Value:
    """A column some columns further."""
    if columns == 0:
        return start
    known = constant_of(start)
    return start + columns if known is None else constant(known + columns)

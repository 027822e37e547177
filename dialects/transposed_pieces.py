"""Pieces of a store whose rows are columns of C (swap-AB), as `legality` limits them."""

from __future__ import annotations

import functools

from .layout import CORE_ROWS
from .target import Target

ITEM_BYTES = 2
WIDEST = 64  # columns that are transposed together where none are asked for


@functools.cache
def transposed_piece(target: Target, n: int, columns: int, item_bytes: int) -> str | None:
    """A piece whose columns are contiguous is transposed by stmatrix, 8 columns at a time.

    Tensor memory is read by columns that are a power of two (PTX ISA, tcgen05.ld: 16x256b).
    """
    if item_bytes != ITEM_BYTES:
        return f"only 16-bit elements are transposed on the way, got {item_bytes} bytes"
    scattered = target.has_tensor_memory and columns & (columns - 1)
    if columns % CORE_ROWS or n % columns or scattered or columns > target.box_max:
        form = "a power of two from 8 on" if target.has_tensor_memory else "a multiple of 8"
        return f"columns must be {form} that divides the tile's {n}, got {columns}"
    return None


def transposed_columns(target: Target, n: int) -> int:
    """The most columns of such a piece, up to those of a swizzle span, of a tile of `n`."""
    every = range(WIDEST, CORE_ROWS, -CORE_ROWS)
    fitting = (each for each in every if transposed_piece(target, n, each, ITEM_BYTES) is None)
    return next(fitting, CORE_ROWS)

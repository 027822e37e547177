"""Layouts as data: shapes and strides, swizzles, tiles in shared memory, fragments in registers.

    Layout, Swizzle, Swizzled                       functions from coordinates to offsets
    coalesce, compose, complement, divide, join     layouts from layouts
    left_inverse, right_inverse
    Fragment, find_fragment                         who holds what of an instruction's operand
    TileLayout                                      an operand tile in shared memory

Needs neither MLIR nor numpy.
"""

from .dialects.fragments import Fragment, find_fragment
from .dialects.layout import TileLayout
from .dialects.strided import (
    Layout,
    LayoutError,
    Swizzle,
    Swizzled,
    coalesce,
    complement,
    compose,
    divide,
    join,
    left_inverse,
    right_inverse,
)

__all__ = [
    "Fragment",
    "Layout",
    "LayoutError",
    "Swizzle",
    "Swizzled",
    "TileLayout",
    "coalesce",
    "complement",
    "compose",
    "divide",
    "find_fragment",
    "join",
    "left_inverse",
    "right_inverse",
]

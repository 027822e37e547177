"""Tensor maps whose last row is the last row of a group, wherever that is.

    dims      [columns, rows, …]    →   [columns, FAR, …, REACH, REACH]
    strides   [pitch, …]            →   [pitch, …, pitch, 2^34 - pitch]

Row `row` of the group that has `count` rows from row `first` on is at coordinates FAR - count + row
of dimension 1, first + count and FAR of the last two. In bytes from the base that is

    (FAR - count + row) * pitch + (first + count) * pitch + FAR * (2^34 - pitch)
    = (first + row) * pitch + 2^64

and addresses have 64 bits. Dimension 1 ends past the last row of the group, so that loads fill
with zero what lies after it, and stores drop it. One map does for all groups. Triton
(`tools/ragged_tma.py`) and QuACK bound groups so.
"""

from __future__ import annotations

from ..runtime.group_sizes import FAR as FAR
from ..runtime.group_sizes import is_ragged as has_ragged_dims
from ..runtime.group_sizes import ragged
from .layout import TileLayout
from .tile_types import TensorMapType

MORE_DIMS = 2
ROWS_OF_PART = 64  # the least that a warpgroup's MMA has


def ragged_map(whole: TensorMapType) -> TensorMapType:
    """The map of the same boxes, whose rows end with those of a group."""
    dims, strides = ragged(whole.dims, whole.strides)
    return TensorMapType.of(whole.element, dims, strides, [*whole.box, 1, 1], whole.swizzle)


def part_map(whole: TensorMapType, parts: int) -> TensorMapType:
    """The map whose boxes have the rows of one of so many parts of a tile."""
    columns, rows, *others = whole.box
    box = [columns, rows // parts, *others]
    return TensorMapType.of(whole.element, whole.dims, whole.strides, box, whole.swizzle)


def is_ragged(map_: TensorMapType) -> bool:
    """Whether a map's rows end with those of a group."""
    return has_ragged_dims(map_.dims, map_.strides)


def plain_rank(map_: TensorMapType) -> int:
    """Dimensions that the map would have if its rows ended with the view's."""
    return len(map_.dims) - (MORE_DIMS if is_ragged(map_) else 0)


def parts_of_rows(map_: TensorMapType, layout: TileLayout) -> int:
    """Into how many parts of its rows the boxes of a map cut a tile; 0 where they do not.

    A part is a warpgroup's, 64 rows or a multiple of them; a tile of one part may have any.
    """
    box = plain_box(map_)
    if box == [layout.span, layout.rows]:
        return 1
    rows = box[1]
    cut = layout.major == "k" and rows % ROWS_OF_PART == 0 and layout.rows % rows == 0
    return layout.rows // rows if cut and box == [layout.span, rows] else 0


def plain_box(map_: TensorMapType) -> list[int]:
    """The box without the dimensions that a ragged map has more."""
    return map_.box[: plain_rank(map_)]

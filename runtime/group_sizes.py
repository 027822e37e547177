"""What the compiler and the loader share about grouped products.

A ragged tensor map ends where a group's rows do (docs/grouped.md):

    dims [columns, FAR, …, REACH, REACH]    strides [pitch, …, pitch, WRAP_BYTES - pitch]
"""

from collections.abc import Sequence
from typing import Any

OFFSETS = "offsets"
"""The name of the input that says where groups of rows end."""
ROWS = "rows"
"""The name of the input that says which rows of A the rows of all groups are."""
ORDER = "order"
"""The name of the input that says which group of K is whose turn."""
ATOM_ROWS = 128
"""Rows that an atom of block scales is of."""
FAR = 2**30
"""The extent of the rows in a ragged map, and the last of its coordinates: the most rows or K that
groups are cut from."""
REACH = 0x7FFF0000
"""The extent of the two dimensions that it has more than a plain map."""
WRAP_BYTES = 2**64 // FAR
"""FAR steps of so many bytes are no step, as addresses have 64 bits."""


def tiles_of_groups(extent: int, groups: int, tile: int, together: int) -> int:
    """Tiles of `tile` rows that are enough for any groups of `extent` rows.

    Each group has a multiple of `together` of them, for clusters.
    """
    unit = tile * together
    return max(1, (extent + groups * (unit - 1)) // unit) * together


def rows_of_atoms(rows: int, groups: int) -> int:
    """Rows of scales in atoms of 128, of which each group of rows has whole ones; enough for any
    groups of so many rows."""
    return ATOM_ROWS * tiles_of_groups(rows, groups, ATOM_ROWS, 1)


def ragged(dims: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """The dims and strides of the ragged map, of those of a plain one."""
    columns, _, *others = dims
    pitch = strides[0]
    return [columns, FAR, *others, REACH, REACH], [*strides, pitch, WRAP_BYTES - pitch]


def is_ragged(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a map of those dims and strides is a ragged one."""
    return len(dims) > 3 and ([*dims], [*strides]) == ragged(dims[:-2], strides[:-2])


def heavy_first(offs: Any, extent: int) -> Any:
    """The groups by how much of K each has, the most first; of those with as much the first."""
    import torch

    ends = offs.clamp(0, extent)
    counts = torch.diff(ends, prepend=ends.new_zeros(1)).clamp(min=0)
    return counts.argsort(descending=True, stable=True).int()

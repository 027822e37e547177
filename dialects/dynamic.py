"""Extents that are known only at launch: how attributes encode them and messages show them."""

from collections.abc import Iterable

DYNAMIC = -1
"""An extent that a launch says, in an attribute of numbers; in a shape it is `?`."""


def up_to(extent: int) -> int:
    """In such attributes: as many rows of a box as there are, at most so many."""
    return -extent


def rows_times(pitch: int) -> int:
    """In the strides of a map: as many times the pitch of rows as there are rows, which a launch
    says. So matrices of a stack lie one after the other."""
    return -pitch


def joined(extents: Iterable[int]) -> str:
    """The extents as MLIR writes a shape: `?x256`."""
    return "x".join("?" if extent < 0 else str(extent) for extent in extents)

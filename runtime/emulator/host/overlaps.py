"""Arrays that share bytes, as views of one buffer do: one run of global memory for all of them.

On a GPU they have addresses in one allocation. Two addresses would hide every race between them,
and what is written through one would be uninitialised, or unordered, for the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ..truth import all_of

_WORK = 1 << 16
"""How long numpy may think about whether two strided arrays share a byte."""


def bounds(array: np.ndarray) -> tuple[int, int]:
    """Host addresses [low, high) of the bytes that an array spans."""
    if not array.size:
        at = array.__array_interface__["data"][0]
        return at, at
    return np.lib.array_utils.byte_bounds(array)


def first_byte(array: np.ndarray) -> int:
    """The host address of an array's first element, which negative strides have at the end."""
    return array.__array_interface__["data"][0]


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays share a byte; true where that is too hard to tell."""
    if not np.may_share_memory(one, other):
        return False
    try:
        # numpy's stub knows the limits -1 and 0 alone
        return np.shares_memory(one, other, max_work=_WORK)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def groups(arrays: Sequence[np.ndarray]) -> list[list[int]]:
    """The numbers of the arrays, those together that share bytes, also by way of others."""
    found: list[list[int]] = []
    for number, array in enumerate(arrays):
        touching = [group for group in found if any(overlap(array, arrays[n]) for n in group)]
        found = [group for group in found if group not in touching]
        found.append(sorted([n for group in touching for n in group] + [number]))
    return sorted(found)


def image(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """(the bytes that the arrays span, in their own memory; allowed marks or None if dense)."""
    if len(arrays) == 1 and arrays[0].flags.c_contiguous:
        (array,) = arrays
        return (array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)), None
    spans = [bounds(array) for array in arrays]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    flat = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
    allowed = np.zeros(high - low, np.uint8)
    for array in arrays:
        if array.size:
            _mark(allowed, first_byte(array) - low, array)
    return flat, None if all_of(allowed) else allowed


def _mark(allowed: np.ndarray, first: int, array: np.ndarray) -> None:
    shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    np.ndarray(shape, np.uint8, allowed, first, strides)[...] = 0xFF

"""Copies of operands that no kernel can read in place, and warnings about large ones."""

from __future__ import annotations

import sys
import warnings
from math import prod
from typing import Any

from ..element_types import is_torch
from ..errors import CopyWarning

SILENT_BYTES = 2**20
"""A copy of so much is lost in what a launch costs."""


def warn_of_copy(name: str, array: Any, reason: str) -> None:
    """Say that an array is copied in this call, and why, unless it is small."""
    size = prod(array.shape) * array.itemsize
    if size <= SILENT_BYTES or (is_torch(array) and _is_fake(array)):
        return
    sizes = "x".join(map(str, array.shape))
    text = f"{name} [{sizes}] is copied in each such call, {size / 2**20:.0f} MiB: {reason}"
    warnings.warn(CopyWarning(text), stacklevel=_callers_level())


def _is_fake(tensor: Any) -> bool:
    """Whether torch only traces: nothing is copied yet."""
    return type(tensor).__name__ == "FakeTensor"


def _callers_level() -> int:
    """How many frames the caller of this package is away."""
    package = __name__.split(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    return level

"""What `math=fast` allows beyond f32 code: half a unit in the last place of C.

A value may be off by that before it is rounded, so that the rounded one is at most one number of
C's type further out than the limits say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..math_policies import FAST, FUNCTIONS
from .intervals import Interval

NARROW = ("bf16", "f16", "e4m3", "e5m2")
INSIDE = 1 - 2.0**-20
"""Of a power of two, what lies on the side where numbers stand closer."""


def is_relaxed(manifest: Mapping[str, Any], epilogue: Mapping[str, Any], dtype: str) -> bool:
    """Whether the policy of a kernel allows more for an output that an epilogue gives."""
    names = (each["name"] for each in epilogue["operations"])
    return any_function(names) and allows_more(manifest, dtype)


def any_function(names: Iterable[str]) -> bool:
    """Whether one of these ops is a function that the policy is about."""
    return any(name in FUNCTIONS for name in names)


def allows_more(manifest: Mapping[str, Any], dtype: str) -> bool:
    """Whether functions of an output of that type may be off by more than float32 code is."""
    return manifest.get("math") == FAST and dtype in NARROW


def relaxed(limits: Interval, half_ulp: Callable[[np.ndarray], np.ndarray]) -> Interval:
    """Limits of rounded values, each moved by one number; `half_ulp` is that of their type."""

    def moved(part: np.ndarray, sign: int) -> np.ndarray:
        towards_zero = np.sign(part) == -sign
        step = 2 * half_ulp(np.where(towards_zero, part * INSIDE, part))
        return np.where(np.isfinite(part), part + sign * step, part)

    return Interval(moved(limits.low, -1), limits.middle, moved(limits.high, 1), limits.nan)

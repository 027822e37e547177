"""Reductions over neighbours in a row, on intervals: the largest magnitude, and sums in f32."""

from __future__ import annotations

import numpy as np

from .intervals import Interval

UNIT = 2.0**-24
SMALLEST = 2.0**-150  # half a step of the smallest f32


def over_groups(values: Interval, kind: str, group: int) -> Interval:
    """[m, n] to [m, n / group], the last group of a row being what is left.

    A sum of f32 in any order errs by at most one rounding of 2^-24 in each of its additions
    (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
    """
    nan = np.asarray(_grouped(values.nan, group, False).any(-1))
    sizes = [np.abs(part) for part in (values.low, values.high)]
    if kind == "amax":
        crosses = (values.low <= 0) & (values.high >= 0)
        low = np.where(crosses, 0.0, np.minimum(*sizes))
        parts = (low, np.abs(values.middle), np.maximum(*sizes))
        least, between, most = (_grouped(part, group, 0.0).max(-1) for part in parts)
        return Interval(least, between, most, nan)
    low, middle, high = (_grouped(part, group, 0.0).sum(-1) for part in values.parts())
    size = _grouped(np.maximum(*sizes), group, 0.0).sum(-1)
    growth = (1 + UNIT) ** (group - 1) - 1
    slack = growth * size * (1 + growth) + SMALLEST
    return Interval(low - slack, middle, high + slack, nan)


def _grouped(part: np.ndarray, group: int, fill: float) -> np.ndarray:
    rows, columns = part.shape
    padded = np.pad(part, ((0, 0), (0, -columns % group)), constant_values=fill)
    return padded.reshape(rows, -1, group)

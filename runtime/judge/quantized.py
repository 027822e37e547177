"""Bounds of elements and scales of a C with block scales.

The formulas are those of the formats, in float64, and shared with nobody: a scale follows from the
largest magnitude of its block (OCP Microscaling Formats 1.0, §6.3; cuBLAS and torchao for the other
ways to round it), an element is the value over the scale that the kernel wrote. So a scale may be
one step off only where some value of the block's interval gives that step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .group_sums import over_groups
from .intervals import Interval

ELEMENTS = {
    "e4m3": (3, -6, 448.0),
    "e5m2": (2, -14, 57344.0),
    "e2m3": (3, 0, 7.5),
    "e3m2": (2, -2, 28.0),
    "e2m1": (1, 0, 6.0),
    "ue4m3": (3, -6, 448.0),
}
"""Fraction bits, the exponent of the least normal number, and the largest number."""
LEAST_POWER = -127  # of ue8m0, of code 0
LEAST_FRACTION = {"nearest": 0.0, "normal": 2.0**-6}
PRODUCT_ERROR = 2.0**-22
"""Of a scale of ue4m3 before it is rounded, and of an element: two roundings in f32."""
FLOAT32_MAX = (2 - 2.0**-23) * 2.0**127


def scales_of(
    values: Sequence[Interval], how: Mapping[str, Any], element: str, scale: Mapping[str, Any]
) -> Interval:
    """Which scales the blocks of each matrix of values may have, at their places in the atoms.

    What pads the atoms is code 0. `how` is the manifest's `quantized`, `scale` the tensor.
    """
    shape, rounding = tuple(scale["shape"]), how["rounding"]
    padding = 2.0**LEAST_POWER if scale["dtype"] == "ue8m0" else 0.0
    low, middle, high = (np.full(shape, padding) for _ in range(3))
    nan = np.zeros(shape, bool)
    for number, each in enumerate(values):
        amax = over_groups(each, "amax", how["block"])
        stack = (number,) if len(shape) > 5 else ()
        place = (*stack, *_places(*amax.middle.shape))
        error = PRODUCT_ERROR if rounding in LEAST_FRACTION else 0.0
        low[place] = _scale(np.minimum(amax.low, FLOAT32_MAX) * (1 - error), element, rounding)
        middle[place] = _scale(amax.middle, element, rounding)
        most = np.minimum(amax.high, FLOAT32_MAX) * (1 + error)
        high[place] = _scale(most, element, rounding)
        nan[place] = amax.nan | (amax.high > FLOAT32_MAX)
    return Interval(low, middle, high, nan)


def elements_of(
    values: Interval, scales: np.ndarray, how: Mapping[str, Any], element: str
) -> Interval:
    """Which elements a matrix of values may have by scales, [atoms of the matrix]."""
    rows, columns = np.shape(values.middle)
    each = scales[_places(rows, columns // how["block"])]
    each = np.repeat(each, how["block"], axis=-1)
    error = PRODUCT_ERROR if how["rounding"] in LEAST_FRACTION else 0.0
    with np.errstate(all="ignore"):
        parts = [np.where(each == 0, 0.0, part / each) for part in values.parts()]
        low, middle, high = parts
        low, high = low - np.abs(low) * error, high + np.abs(high) * error
        low, middle, high = (nearest(part, element) for part in (low, middle, high))
    anything = np.isnan(each) | values.nan
    low, high = np.where(anything, -np.inf, low), np.where(anything, np.inf, high)
    return Interval(low, np.where(anything, np.nan, middle), high, anything)


def nearest(values: np.ndarray, element: str) -> np.ndarray:
    """The nearest numbers of a type, ties to even, beyond its largest number that."""
    fraction, least, largest = ELEMENTS[element]
    inside = np.clip(values, -largest, largest)
    exponents = np.frexp(np.where(np.isfinite(inside), inside, 0))[1] - 1
    step = np.exp2(np.maximum(exponents, least) - fraction)
    return np.rint(inside / step) * step


def _scale(amax: np.ndarray, element: str, rounding: str) -> np.ndarray:
    """The scale of blocks with these largest magnitudes; NaN of what is none."""
    fraction, _, largest = ELEMENTS[element]
    known = np.where(np.isfinite(amax), amax, 0)
    if rounding in LEAST_FRACTION:
        found = nearest(np.maximum(known / largest, LEAST_FRACTION[rounding]), "ue4m3")
    else:
        power = np.frexp(known)[1] - 1
        above = np.exp2(power + 1.0)
        top = np.frexp(largest)[1] - 1
        up = {
            "floor": np.zeros(known.shape, bool),
            "ceil": known > above / 2,
            "even": known >= above * (1 - 2.0 ** -(fraction + 2)),
            "rceil": known > np.exp2(power - float(top)) * largest,
        }[rounding]
        exponent = np.where(known == 0, LEAST_POWER, power + up - top)
        found = np.exp2(np.maximum(exponent, LEAST_POWER).astype(np.float64))
    return np.where(np.isfinite(amax), found, np.nan)


def _places(rows: int, blocks: int) -> tuple[np.ndarray, ...]:
    """Where the scale of each row and block lies (cuBLAS, block scaling factors layout)."""
    row, block = np.arange(rows)[:, None], np.arange(blocks)[None, :]
    return row // 128, block // 4, row % 32, row // 32 % 4, block % 4

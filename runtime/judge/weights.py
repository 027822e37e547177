"""Bounds of the accumulators of weights with group scales, in float64.

    c[i,j] = sum_g s[j,g] * sum_k a[i,k] * (b[j,k] - z[j,g]), k of group g

A kernel may round the product of a scale with an element, or with the sum of a group or of a part
of it, and each sum. That is one rounding more than a sum of the scaled products has; elements less
their zero points, and their products with A, are exact in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bundles.manifest import operands
from .intervals import HALF_ULP, Interval
from .sums import accumulator_interval

SCALES, ZEROS = "scales", "zeros"
EXTRA = HALF_ULP * (1 + 2.0**-10)


def has_groups(manifest: Mapping[str, Any]) -> bool:
    """Whether B's elements are weights with scales of groups."""
    return "weights" in manifest


def weighted_sums(manifest: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> Interval:
    """The sums with their limits."""
    group = manifest["weights"]["group"]
    a, b = (values[each["name"]] for each in operands(manifest))
    zeros = np.repeat(values[ZEROS], group, axis=1) if ZEROS in values else 0.0
    scaled = (b - zeros) * np.repeat(values[SCALES], group, axis=1)
    error = EXTRA * (np.abs(a) @ np.abs(scaled).T)
    return accumulator_interval(a, scaled).widened(error)

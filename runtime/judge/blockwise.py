"""Bounds of the accumulators of operands with f32 scales of 128 elements of K, in float64.

    c[i,j] = sum_q sa[i,q] * sb[j,q] * sum_k a[i,k] * b[j,k], k of block q

The formula is that of the definition (torch 2.13, `BlockWise1x128` and `BlockWise128x128`). A
kernel may round the product of two scales, each element's product with it, and each sum: two
roundings more than a sum of the scaled products has. On a Hopper GPU each block's sum of 8-bit
floats has the limits of `narrow_sums`, times its scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bundles.manifest import operands
from .intervals import HALF_ULP, Interval
from .sums import accumulator_interval, narrow_kinds, narrow_sums

BLOCK = 128
SCALES = ("a_scales", "b_scales")
EXTRA = 2 * HALF_ULP * (1 + 2.0**-10)


def is_blockwise(manifest: Mapping[str, Any]) -> bool:
    """Whether the operands have scales of 128 elements of K."""
    return "blockwise" in manifest


def scale_of_each_row(scales: np.ndarray, form: str, rows: int, k: int) -> np.ndarray:
    """[rows, blocks of K] scales from an array as its form says that it lies."""
    blocks = -(-k // BLOCK)
    if form == "1x128":
        return scales.T
    return np.repeat(scales, BLOCK, axis=0)[:rows, :blocks]


def blockwise_sums(
    manifest: Mapping[str, Any], values: Mapping[str, np.ndarray], on_gpu: bool
) -> Interval:
    """The sums with their limits, of one matrix of each operand and of its scales."""
    named, forms = operands(manifest), manifest["blockwise"]
    a, b = (values[each["name"]] for each in named)
    of_a, of_b = (
        scale_of_each_row(values[name], form, *each.shape)
        for name, form, each in zip(SCALES, (forms["a"], forms["b"]), (a, b), strict=True)
    )
    scaled = [
        each * np.repeat(factors, BLOCK, axis=1)[:, : each.shape[1]]
        for each, factors in ((a, of_a), (b, of_b))
    ]
    sums = accumulator_interval(*scaled)
    error = EXTRA * (np.abs(scaled[0]) @ np.abs(scaled[1]).T)
    smallest = narrow_kinds(manifest, on_gpu)
    if smallest is None:
        return sums.widened(error)
    for block in range(of_a.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        narrow = narrow_sums(a[:, part], b[:, part], *smallest)
        factor = np.abs(np.outer(of_a[:, block], of_b[:, block]))
        error = error + factor * (narrow.high - narrow.low)
    return sums.widened(error)

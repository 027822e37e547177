"""The judge of a C with block scales: right ones pass, and what is one step off does not."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.judge.intervals import Interval
from tilewright.runtime.judge.quantized import elements_of, nearest, scales_of
from tilewright.runtime.judge.reference import compare

HOW = {"scales": "c_scales", "block": 32, "rounding": "floor"}
POWER = {"dtype": "ue8m0", "shape": [1, 1, 32, 4, 4]}
KINDS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}


def matrix(first, slack=0.0):
    """A row of 32 numbers, the first of them the largest, and another of half of them."""
    row = np.linspace(1, 0.1, 32) * first
    values = np.stack([row, row / 2])
    return Interval(values * (1 - slack), values, values * (1 + slack))


@pytest.mark.parametrize("element", KINDS)
def test_elements_are_rounded_as_ml_dtypes_does(element):
    largest = float(ml_dtypes.finfo(KINDS[element]).max)
    values = np.random.default_rng(3).uniform(-largest, largest, 500).astype(np.float32)
    wanted = values.astype(KINDS[element]).astype(np.float64)
    assert np.array_equal(nearest(values.astype(np.float64), element), wanted)


@pytest.mark.parametrize(
    ("rounding", "amax", "scale"),
    [
        ("floor", 500.0, 1.0),  # OCP: 2^(8 - 8), of a number beyond 448
        ("ceil", 257.0, 2.0),
        ("even", 496.0, 2.0),  # 1.9375 lies between 1.875 and 2, which have three fraction bits
        ("even", 495.0, 1.0),
        ("rceil", 448.0, 1.0),
        ("rceil", 449.0, 2.0),
    ],
)
def test_each_way_makes_the_scale_that_its_formula_says(rounding, amax, scale):
    found = scales_of([matrix(amax)], {**HOW, "rounding": rounding}, "e4m3", POWER)
    assert found.low[0, 0, 0, 0, 0] == found.high[0, 0, 0, 0, 0] == scale
    assert found.middle[0, 0, 1, 0, 0] == scale / 2


def test_a_scale_may_be_a_step_off_only_where_the_sum_may_lie_across():
    for slack, passes in ((0.0, False), (1e-6, True)):
        limits = scales_of([matrix(256.0, slack)], HOW, "e4m3", POWER)
        written = limits.middle.copy()
        written[0, 0, 0, 0, 0] = 0.5  # as of an amax a little below 256
        assert compare(limits, written, "ue8m0").passed == passes
        below = scales_of([matrix(256.0 * (1 - 2**-22), slack)], HOW, "e4m3", POWER)
        written[0, 0, 0, 0, 0] = 1.0  # and of one of 256 itself
        assert compare(below, written, "ue8m0").passed == passes


def test_padding_that_is_not_zero_is_found():
    limits = scales_of([matrix(3.0)], HOW, "e4m3", POWER)
    written = limits.middle.copy()
    assert compare(limits, written, "ue8m0").passed
    written[0, 0, 5, 3, 2] = np.nan
    assert compare(limits, written, "ue8m0").index == (0, 0, 5, 3, 2)


def test_an_element_follows_from_the_scale_that_was_written():
    values = matrix(440.0)
    scale = np.full(POWER["shape"], 2.0**-127)
    scale[0, 0, :2, 0, 0] = 2.0, 0.5
    limits = elements_of(values, scale, HOW, "e4m3")
    assert limits.middle[0, 0] == 224.0 and limits.middle[1, 0] == 448.0
    wrong = limits.middle.copy()
    wrong[0, 1] = nearest(np.float64(wrong[0, 1] * 1.1), "e4m3")
    assert compare(limits, limits.middle, "e4m3").passed
    assert compare(limits, wrong, "e4m3").index == (0, 1)


def test_a_block_of_nan_may_hold_any_elements_but_has_a_scale_of_nan():
    values = matrix(3.0)
    values.middle[0, 4] = np.nan
    values = Interval(*[np.where(np.isnan(values.middle), np.nan, p) for p in values.parts()])
    limits = scales_of([values], HOW, "e4m3", POWER)
    assert limits.nan[0, 0, 0, 0, 0] and np.isnan(limits.low[0, 0, 0, 0, 0])
    scale = np.where(np.isnan(limits.middle), np.nan, limits.middle)
    assert compare(elements_of(values, scale, HOW, "e4m3"), np.full((2, 32), 0.25), "e4m3").index[0]

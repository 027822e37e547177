"""fma.rn.f64 of whole warps rounds once, as exact fractions say."""

from fractions import Fraction

import numpy as np
import pytest

from tilewright.runtime.emulator.instructions.values.double_fma import fused, is_tame

RANDOM = np.random.default_rng(11)
COUNT = 500


def operands(kind):
    a, b = RANDOM.standard_normal((2, COUNT))
    if kind == "any size":
        return a, b, RANDOM.standard_normal(COUNT) * 2.0 ** RANDOM.integers(-70, 70, COUNT)
    if kind == "few digits":
        return np.round(a * 8) / 8, np.round(b * 8) / 8, np.round(a * b * 2**55) / 2**55
    return a, b, -(a * b) * (1 + RANDOM.integers(-2, 3, COUNT) * 2.0**-52)


@pytest.mark.parametrize("kind", ["any size", "few digits", "nearly cancelled"])
def test_a_product_and_a_sum_round_once(kind):
    a, b, c = operands(kind)
    wanted = [
        float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)
    ]
    assert is_tame(a, b, c).all()
    assert fused(a, b, c).tolist() == wanted


def test_zeros_keep_their_sign_and_the_ends_of_the_range_are_told_apart():
    a, b, c = (np.array(each) for each in ([-0.0, 0.0, 1e300], [1.0, 1.0, 2.0], [-0.0, -0.0, 1.0]))
    assert np.signbit(fused(a, b, c))[:2].tolist() == [True, False]
    assert is_tame(a, b, c).tolist() == [True, True, False]

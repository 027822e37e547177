"""Where a result may be NaN, where it must be, and which numbers are left beside it."""

import numpy as np
import pytest

from tilewright.runtime.judge import intervals
from tilewright.runtime.judge.intervals import Interval
from tilewright.runtime.judge.reference import compare
from tilewright.runtime.judge.sums import accumulator_interval

INF, NAN = np.inf, np.nan
ENDS = [-INF, -3.0, -1.0, 0.0, 2.0, INF]


def interval(low, high):
    return Interval(np.array(low), np.array(high), np.array(high))


def points(low, high):
    """Numbers of an interval: its ends, and some inside."""
    inside = [value for value in (-1e30, -2.0, -0.5, 0.0, 0.5, 1.0, 1e30) if low < value < high]
    return [low, *inside, high]


@pytest.mark.parametrize(
    ("operation", "function"),
    [
        (intervals.add, np.add),
        (intervals.subtract, np.subtract),
        (intervals.multiply, np.multiply),
        (intervals.divide, np.divide),
        (intervals.maximum, np.maximum),
        (intervals.maximum_number, np.fmax),
        (intervals.minimum_number, np.fmin),
    ],
)
def test_every_pair_of_points_lies_in_the_result_or_is_a_nan_that_may_be(operation, function):
    pairs = [(a, b) for a in ENDS for b in ENDS if a <= b]
    with np.errstate(all="ignore"):
        for one in pairs:
            for other in pairs:
                found = operation(interval(*one), interval(*other))
                every = [function(x, y) for x in points(*one) for y in points(*other)]
                for value in every:
                    held = found.low <= value <= found.high or (np.isnan(value) and found.nan)
                    assert held, (one, other, value, found)
                if found.certainly_nan():
                    assert np.isnan(every).all(), (one, other)


def test_a_root_of_what_may_be_negative_is_a_number_or_nan():
    found = intervals.root(interval([-1e-9], [4.0]))
    assert (found.low, found.high, bool(found.nan)) == (0.0, 2.0, True)
    for value in (0.0, 1.5, NAN):
        assert compare(found, np.array([value])).passed
    assert not compare(found, np.array([2.1])).passed


def test_a_nan_is_refused_where_every_result_is_a_number():
    assert not compare(intervals.root(interval([0.0], [4.0])), np.array([NAN])).passed


def test_maxnum_of_what_may_be_nan_may_be_the_other_operand():
    perhaps = intervals.root(interval(-1e-9, 4.0))
    found = intervals.maximum_number(perhaps, interval(-5.0, -4.0))
    assert (found.low, found.high, bool(found.nan)) == (-5.0, 2.0, False)


def test_a_choice_that_rounding_decides_may_be_either_even_where_one_is_nan():
    condition = Interval(np.array(0.0), np.array(1.0), np.array(1.0))
    found = intervals.choose(condition, interval(1.0, 2.0), Interval.exactly(NAN))
    assert (found.low, found.high, bool(found.nan)) == (1.0, 2.0, True)


def test_sums_that_overflow_in_one_order_only_may_be_infinite():
    big = 2.0**127
    found = accumulator_interval(np.array([[big, big, -big]]), np.ones((2, 3)) * [[1], [0.5]])
    assert found.middle.tolist() == [[big, big / 2]]
    assert found.high[0, 0] == INF
    assert found.low[0, 0] > 0
    assert np.isfinite(found.high[0, 1])


def test_a_sum_with_an_infinity_stays_infinite():
    found = accumulator_interval(np.array([[INF, 1e38, 1e38]]), np.array([[1.0, 1.0, -1.0]]))
    assert (found.low, found.high, bool(found.nan[0, 0])) == (INF, INF, False)


def test_exp_of_minus_infinity_is_zero():
    least = Interval.exactly([-INF])
    found = intervals.rounded("math.exp", least.map(np.exp), least)
    assert compare(found, np.array([0.0])).passed
    assert not compare(found, np.array([1e-6])).passed


def test_widening_an_interval_that_reaches_infinity_keeps_its_other_end():
    found = intervals.rounded("arith.addf", interval(5.0, INF))
    assert 4.999 < found.low <= 5.0

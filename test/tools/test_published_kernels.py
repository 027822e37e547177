"""The estimate of kernels with tcgen05.mma, held to what others published of kernels on a B200."""

from dataclasses import replace
from statistics import median

import pytest

from tilewright.tools.ladder.published import PUBLISHED
from tilewright.tools.ladder.speeds import predicted_as_timed
from tilewright.tools.ladder.timed_kernels import TIMED

SERIES = (
    ("v1b", "v1a", "v2a", "v2b", "v3", "v4", "v5", "v6"),
    ("kernel2", "kernel3", "kernel4", "kernel5", "kernel6", "kernel7", "kernel8"),
)
# learn-cuda's README, a later run for seconds on another B200: 10¹² operations a second.
LATER = {
    "v1a": 255.73, "v1b": 254.37, "v2a": 699.39, "v2b": 721.02, "v3": 914.42, "v4": 1053.61,
    "v5": 1169.65, "v6": 1273.32,
}  # fmt: skip
LATER_V7A = {2048: 930.34, 4096: 1293.38, 8192: 1283.26}


def speed(timed):
    m, n, k = timed.shape
    return 2 * m * n * k / predicted_as_timed(timed, "sm_100a").total_us / 1e6


def test_all_published_rungs_have_the_kernel_that_was_timed():
    assert set(TIMED) == {name for rungs in SERIES for name in rungs}


def test_each_rung_is_within_a_fifth_and_half_of_them_within_a_twelfth():
    off = {name: speed(TIMED[name]) / PUBLISHED[name].tflops - 1 for name in TIMED}
    assert max(map(abs, off.values())) <= 0.20, off
    assert median(map(abs, off.values())) <= 0.08, off


@pytest.mark.parametrize("rungs", SERIES)
def test_the_order_of_the_rungs_is_that_of_the_publication(rungs):
    """Variants that differ in the rank of their boxes alone have one prediction."""
    published = [PUBLISHED[name].tflops for name in rungs]
    found = [speed(TIMED[name]) for name in rungs]
    assert published == sorted(published) and found == sorted(found)


def test_a_later_run_of_the_same_kernels_is_predicted_with_its_clock():
    """The clock of `sustained` is read from v7a at 4096; nothing else is of these times."""
    found = {name: speed(replace(TIMED[name], inputs="sustained")) for name in LATER}
    off = {name: found[name] / tflops - 1 for name, tflops in LATER.items()}
    assert max(map(abs, off.values())) <= 0.20 and median(map(abs, off.values())) <= 0.08, off


def test_a_kernel_that_was_not_looked_at_is_predicted_at_three_sizes():
    text = TIMED["v6"].pipeline.replace("order=n", "order=grouped group=2")
    for size, tflops in LATER_V7A.items():
        v7a = replace(TIMED["v6"], pipeline=text, shape=(size,) * 3, inputs="sustained")
        assert speed(v7a) == pytest.approx(tflops, rel=0.20)

"""The estimate for a B200 beside times from which none of its figures was read."""

from pathlib import Path
from statistics import median

import pytest

from tilewright.tools.pages import published_elsewhere as page
from tilewright.tools.pages.published_elsewhere import (
    LONG,
    MULTICTA,
    PROFILER,
    PYPTX,
    SCALED_ROWS,
    every_time,
    predicted_us,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def errors():
    """Of each time, by its entry."""
    return {one: predicted_us(one) / one.us - 1 for one in every_time()}


def test_the_page_has_what_is_predicted_now():
    kept = DOCS / "appendix/blackwell-published.md"
    command = f"python -m tilewright.tools.pages.published_elsewhere > docs/appendix/{kept.name}"
    assert kept.read_text() == page.render(), f"run {command}"


def test_known_kernels_are_within_a_quarter_and_half_of_them_within_a_tenth(errors):
    """Those of a profiler are of launches by the host."""
    known = [abs(error) for one, error in errors.items() if one.is_known]
    timed = [abs(error) for one, error in errors.items() if one.is_known and one.source != PROFILER]
    assert len(timed) == 26 and len(known) == 34
    assert max(timed) <= 0.25 and median(timed) <= 0.10


def test_the_profiler_is_never_much_faster_and_agrees_where_a_kernel_is_long(errors):
    profiled = {one: error for one, error in errors.items() if one.source == PROFILER}
    assert all(error <= 0.05 for error in profiled.values())
    assert all(abs(error) <= 0.10 for one, error in profiled.items() if one.us > 20)


def test_long_runs_of_16_bits_have_the_clock_of_long_runs(errors):
    found = [abs(e) for one, e in errors.items() if one.source == LONG and one.dtype == "f16"]
    assert len(found) == 8 and max(found) <= 0.10


def test_kernels_and_libraries_of_tutorials_are_within_a_seventh(errors):
    found = [abs(e) for one, e in errors.items() if one.source in (PYPTX, MULTICTA)]
    assert len(found) == 21 and max(found) <= 1 / 7


def test_few_rows_from_dram_are_not_far_below_any_library(errors):
    found = [e for one, e in errors.items() if one.source == SCALED_ROWS]
    assert len(found) == 25 and min(found) >= -0.3 and median(found) >= -0.18


def test_what_is_chosen_is_near_the_fastest_kernel_of_a_library(errors):
    others = [error for one, error in errors.items() if not one.is_known]
    assert len(others) == 91 and abs(median(others)) <= 0.10
    assert sum(abs(error) <= 0.25 for error in others) >= 0.8 * len(others)

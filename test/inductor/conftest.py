"""What tests of the provider share: a report of their own."""

import pytest


@pytest.fixture(autouse=True)
def without_most_searches_for_races(races_for_a_share):
    """Kernels are those of `test/numerics`: what is tested here is how they are called."""


@pytest.fixture(autouse=True)
def rows():
    """The report's rows, from now on."""
    from tilewright.compiler.inductor import report

    report.reset()
    yield report.REPORT.rows
    report.reset()

"""Kernels that hand data on in drawn ways, by the axioms and by the emulator; more by
fuzz_orders.py."""

import pytest
from fuzz_orders import Verdict, judge


@pytest.fixture(scope="module")
def verdicts() -> dict[int, Verdict]:
    return {seed: verdict for seed in range(20) if (verdict := judge(seed, range(1)))}


def test_the_emulator_orders_what_the_axioms_order(verdicts):
    assert [seed for seed, verdict in verdicts.items() if verdict.differs] == []


def test_right_kernels_and_wrong_ones_are_drawn(verdicts):
    assert {verdict.ordered for verdict in verdicts.values()} == {False, True}

"""Three hundred damaged bundles, a few of them launched; thousands by fuzz_bundles.py."""

import pytest
from fuzz_bundles import judge


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_a_damaged_bundle_is_refused_or_comes_back_as_it_was(start):
    outcomes = [judge(seed, launches=False) for seed in range(start, start + 50)]
    assert [outcome for outcome in outcomes if outcome.is_fault] == []


def test_a_bundle_that_was_sealed_again_launches_or_is_refused():
    outcomes = [judge(seed) for seed in range(1000, 1012)]
    assert [outcome for outcome in outcomes if outcome.is_fault] == []


def test_most_kinds_of_answer_are_met():
    """So that a reader that refuses everything is not taken for a good one."""
    kinds = {judge(seed, launches=False).kind for seed in range(150, 250)}
    assert kinds == {"refused", "as made", "another"}

"""Sixty damaged launch files, and twelve whose PTX is damaged; more by fuzz_launches.py."""

import pytest
from fuzz_launches import judge, launches


@pytest.mark.sweep(2)
@pytest.mark.parametrize("start", range(0, 60, 15))
def test_a_damaged_launch_file_runs_or_is_refused(start):
    outcomes = [judge(seed) for seed in range(start, start + 15)]
    assert [outcome for outcome in outcomes if outcome.is_fault] == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize("start", range(0, 12, 3))
def test_damaged_ptx_runs_or_is_refused(start):
    outcomes = [judge(seed, damages_ptx=True) for seed in range(start, start + 3)]
    assert [outcome for outcome in outcomes if outcome.is_fault] == []


def test_launches_of_many_compilers_are_damaged():
    assert len({path.parent for path in launches()}) >= 3 and len(launches()) > 20

"""What launches and imports ask of Python's garbage collector."""

import gc

import pytest

from tilewright.runtime.collector import no_full_collections


@pytest.fixture(params=[(700, 10, 10), (100_000, 5, 5), (0, 10, 10)])
def before(request):
    """Thresholds of the caller's: Python's own, patient ones, and those that collect nothing."""
    kept = gc.get_threshold()
    gc.set_threshold(*request.param)
    yield request.param
    gc.set_threshold(*kept)


def test_thresholds_are_the_callers_again_behind_the_last_block_that_runs(before):
    first, second, _ = before
    with no_full_collections():
        with pytest.raises(KeyError), no_full_collections():
            raise KeyError
        young, older, full = gc.get_threshold()
        assert young >= 10_000 if first else young == 0, "0 switches the collector off"
        assert young >= first
        assert older == second
        assert full > 10**9
    assert gc.get_threshold() == before

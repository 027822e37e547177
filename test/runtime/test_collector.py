"""What launches and imports ask of Python's garbage collector."""

import gc

import pytest

from tilewright.runtime.collector import no_full_collections


def test_thresholds_are_the_callers_again_behind_the_last_block_that_runs():
    before = gc.get_threshold()
    with no_full_collections():
        with pytest.raises(KeyError), no_full_collections():
            raise KeyError
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] > 10**9
    assert gc.get_threshold() == before

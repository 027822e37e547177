"""What a launch asks of Python's garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from tilewright.runtime.emulator.host.collector import earlier_objects_set_aside


@pytest.fixture(autouse=True)
def nothing_is_frozen() -> Iterator[None]:
    """Without what the suite itself has frozen, until the end of a test."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_objects_from_before_are_visited_again_behind_a_launch():
    with earlier_objects_set_aside():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_objects_that_the_caller_has_frozen_stay_so():
    gc.freeze()
    with earlier_objects_set_aside():
        pass
    assert gc.get_freeze_count() > 0

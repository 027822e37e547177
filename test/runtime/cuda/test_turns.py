"""Contenders that are measured in turns."""

from collections import Counter
from itertools import pairwise

import pytest

from tilewright.runtime.gpu.timing import in_turn


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_nobody_always_comes_behind_the_same_one(count):
    names = list(range(count))
    turns = [in_turn(names, turn) for turn in range(2 * count)]
    assert all(sorted(turn) == names for turn in turns)
    follows = Counter(pair for turn in turns for pair in pairwise(turn))
    assert all(follows[one, other] == follows[other, one] for one, other in follows)
    for places in zip(*turns, strict=True):
        assert set(Counter(places).values()) == {2}

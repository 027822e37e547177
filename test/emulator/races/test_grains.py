"""Marks by words give the same as one array for each byte would."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.checks.races.grains import Block, Grains, bytes_of

SIZE = 256


def cells_of(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.permutation(SIZE // size)[: rng.integers(1, 6)]


@pytest.mark.parametrize("seed", range(8))
def test_marks_of_cells_of_all_sizes_are_those_of_their_bytes(seed):
    rng, marks, plain = np.random.default_rng(seed), Grains(SIZE, np.int64), np.zeros(SIZE)
    for value in range(1, 200):
        size = int(2 ** rng.integers(0, 6))
        cells = cells_of(rng, size)
        marks.put(cells, size, value)
        plain[bytes_of(cells, size)] = value
        asked = int(2 ** rng.integers(0, 6))
        cells = cells_of(rng, asked)
        assert np.array_equal(marks.fine(cells, asked)[0], plain[bytes_of(cells, asked)])
        coarse = marks.coarse(cells, asked)
        if coarse is not None:
            assert np.array_equal(np.repeat(coarse[0], 8), plain[bytes_of(cells, asked)])


def test_words_are_whole_again_once_they_are_written_as_a_whole():
    marks = Grains(64, np.int64)
    marks.put(np.array([5]), 1, 7)
    assert marks.coarse(np.array([0]), 8) is None
    marks.put(np.array([0]), 16, 9)
    assert marks.coarse(np.array([0]), 8)[0].tolist() == [9]


def test_a_block_is_the_words_at_its_distances():
    marks, block = Grains(SIZE, np.int64), Block(3, (2, 3), (10, 1))
    assert block.index().tolist() == [3, 4, 5, 13, 14, 15]
    marks.put(block, 8, 5)
    assert marks.coarse(np.arange(32), 8)[0].nonzero()[0].tolist() == block.index().tolist()
    assert marks.coarse(block, 8)[0].tolist() == [[5] * 3] * 2
    marks.put(np.array([14 * 8]), 1, 6)
    assert marks.coarse(block, 8) is None
    assert marks.fine(block, 8)[0].tolist() == [5] * 32 + [6] + [5] * 15

"""Marks by words give the same as one array for each byte would."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.checks.races.grains import Block, Grains, bytes_of
from tilewright.runtime.emulator.checks.races.reads import LastReads

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


def boxes_of(rng: np.random.Generator) -> Block:
    """Two rows of up to three words, so that boxes overlap."""
    return Block(
        int(rng.integers(0, 12)), (2, int(rng.integers(1, 4))), (int(rng.integers(3, 9)), 1)
    )


@pytest.mark.parametrize("seed", range(12))
def test_reads_kept_by_boxes_are_the_last_two_agents_of_each_byte(seed):
    """Some are asked for only at the end; a read of single bytes in between changes how they are
    kept."""
    rng, reads, plain = np.random.default_rng(seed), LastReads(SIZE), {}
    for when in range(1, 60):
        who = int(rng.integers(1, 4))
        cells, size = (boxes_of(rng), 8) if when != 30 or seed % 2 else (cells_of(rng, 2), 2)
        reads.note(cells, size, who, when)
        for at in bytes_of(cells, size).tolist():
            plain.setdefault(at, []).append((who, when))
    every = np.arange(SIZE)
    last, before = [marks.fine(every, 1) for marks in reads.marks()]
    for at in range(SIZE):
        history = plain.get(at, [(0, 0)])
        newest = history[-1]
        other = next((each for each in reversed(history) if each[0] != newest[0]), (0, 0))
        assert (last[0][at], last[1][at]) == newest
        assert (before[0][at], before[1][at]) == other

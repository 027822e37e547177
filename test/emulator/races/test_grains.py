"""Marks by words give the same as one array for each byte would."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.checks.races.actor import Actor
from tilewright.runtime.emulator.checks.races.clock import Domain
from tilewright.runtime.emulator.checks.races.grains import Block, Grains, Runs, bytes_of
from tilewright.runtime.emulator.checks.races.reads import AgentReads, LastReads

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


def at_time(when: int) -> Actor:
    """Somebody who reads then."""
    return Actor(Domain(0, 1), 1, when, np.zeros((9, 32), np.int64), {})


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
        reads.note(cells, size, who, at_time(when))
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
        kept = 1 + (other != (0, 0)) if newest != (0, 0) else 1
        assert reads.are_forgotten(np.array([at])) == (len(history) > kept)


@pytest.mark.parametrize("cells", [Block(2, (2,), (1,)), np.array([2, 3])])
@pytest.mark.parametrize(("again", "is_forgotten"), [(1, False), (2, True)])
def test_a_read_by_another_line_of_ptx_is_told_to_be_forgotten(cells, again, is_forgotten):
    reads = LastReads(SIZE)
    for who, when in ((1, 1), (2, 1), (1, again)):
        reads.note(cells, 8, who, at_time(when))
    reads.marks()
    assert reads.are_forgotten(np.arange(16, 32)) == is_forgotten
    assert not reads.are_forgotten(np.arange(16))


@pytest.mark.parametrize("seed", range(12))
def test_the_reads_of_one_agent_are_found_wherever_a_later_write_meets_them(seed):
    """What may meet a span must be a superset of the bytes' own times, and those must be exact."""
    rng, reads, plain = np.random.default_rng(seed), AgentReads(SIZE), np.zeros(SIZE, np.int64)
    operands = [cells_of(rng, 8) for _ in range(5)]
    for when in range(1, 250):
        cells = operands[rng.integers(0, 5)] if when % 3 else cells_of(rng, 4)
        size = 8 if when % 3 else 4
        around = (0, SIZE // 2) if bytes_of(cells, size).max() < SIZE // 2 and when % 2 else None
        reads.note(cells, size, at_time(when), None, around)
        plain[bytes_of(cells, size)] = when
        low = int(rng.integers(0, SIZE - 1))
        span = low, int(rng.integers(low + 1, SIZE + 1))
        since = max(1, when - int(rng.integers(0, 20)))
        if plain[slice(*span)].max() >= since:
            assert reads.may_meet(span, since)
        if when % 90 == 0:
            assert reads.marks().fine(np.arange(SIZE), 1)[0].tolist() == plain.tolist()
    assert reads.marks().fine(np.arange(SIZE), 1)[0].tolist() == plain.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_a_run_has_the_mark_of_each_of_its_bytes(seed):
    rng, runs, plain = np.random.default_rng(seed), Runs(), np.zeros(SIZE, np.int64)
    found = 0
    for when in range(1, 300):
        in_row = Block(int(rng.integers(0, 24)), (int(rng.integers(1, 9)),), (1,))
        other = boxes_of(rng) if when % 2 else cells_of(rng, 4)
        cells = in_row if rng.random() < 0.7 else other
        size = 8 if isinstance(cells, Block) else 4
        runs.put(cells, size, 1, when)
        plain[bytes_of(cells, size)] = when
        low = int(rng.integers(0, SIZE - 1))
        high = low + int(rng.integers(1, min(40, SIZE - low) + 1))
        run = runs.around((low, high))
        if run is not None:
            found += 1
            assert set(plain[low:high].tolist()) == {run.when}
    assert found > 20


def test_a_run_holds_no_span_that_leaves_it():
    runs = Runs()
    runs.put(Block(2, (4,), (1,)), 8, 1, 5)
    assert runs.around((16, 48)) == ((16, 48), 1, 5)
    assert runs.around((15, 48)) is None
    assert runs.around((16, 49)) is None
    runs.put(np.array([20]), 1, 2, 6)
    assert runs.around((32, 48)) is None

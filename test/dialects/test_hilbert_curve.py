"""The curve that tiles are handed out along, on every rectangle."""

import itertools

import pytest

from tilewright.dialects.hilbert import CELLS_MAX, hilbert_curve


def steps(cells):
    """How far apart consecutive cells are, along both axes together."""
    return {abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.pairwise(cells)}


@pytest.mark.parametrize("m", range(1, 34))
def test_every_cell_once_and_each_beside_the_one_before(m):
    for n in range(1, 34):
        cells = hilbert_curve(m, n)
        assert sorted(cells) == list(itertools.product(range(m), range(n)))
        assert steps(cells) <= {1}


@pytest.mark.parametrize("grid", [(128, 64), (32, 112), (100, 37)])
def test_a_window_of_the_curve_is_about_a_square(grid):
    cells, size = hilbert_curve(*grid), 132
    windows = [cells[start : start + size] for start in range(0, len(cells) - size, 7)]
    areas = [len({i for i, _ in each}) * len({j for _, j in each}) for each in windows]
    assert size < sum(areas) / len(areas) < 1.6 * size


@pytest.mark.parametrize("grid", [(1, CELLS_MAX), (256, 256), (2, CELLS_MAX // 2), (255, 257)])
def test_the_longest_curves_are_made_too(grid):
    cells = hilbert_curve(*grid)
    assert len(set(cells)) == grid[0] * grid[1]
    assert steps(cells) == {1}

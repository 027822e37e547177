"""Floors of tile shapes that hold for several numbers of rows, and what is chosen for each."""

import random

import pytest

from tilewright.compiler.schedule.any_size.chosen import chosen_schedules
from tilewright.compiler.schedule.any_size.sharing import for_rows, problems_of
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.search import search
from tilewright.compiler.schedule.search.candidates import sides
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec

CHIPS = ("sm_100a", "sm_90a", "h100")
ROUNDED = 1 - 1e-12
SPECS = {
    "long-k": {"n": 1024, "k": 8192},
    "rows-inside-lines": {"n": 1000, "k": 1048},
    "rows-of-c-by-threads": {"n": 520, "k": 2052, "beside": ("bf16",), "epilogue_instructions": 2},
    "8-bit": {"n": 4096, "k": 4096, "a_dtype": "e4m3", "b_dtype": "e4m3"},
    "a-by-columns": {"n": 4992, "k": 3968, "a_major": "m", "multiple_m": 8},
    "stack": {"n": 264, "k": 2000, "batch": 6, "dynamic_batch": True},
    "groups": {"n": 512, "k": 512, "groups": 8},
}


def spec_of(name):
    return MatmulSpec(4096, dynamic_m=True, **SPECS[name])


@pytest.mark.parametrize("rows", [(56, 72, 136), (120, 136, 256), (200, 400, 1000)])
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", SPECS)
def test_shared_floors_hold_for_each_number_of_rows(name, chip, rows):
    """From one tile of 64 or 128 rows to several, and to rows that start with a line of L2."""
    spec = spec_of(name)
    target, compared = target_for(spec, chip), 0
    problems = problems_of(spec, [(each, 0) for each in rows], target)
    floors = search.floors_of_rows(problems[0], rows[-1], target)
    for problem in problems:
        for seen in sides(problem) if floors else ():
            known, tile_shapes = floors[seen.swapped].by_tile, search._all_faces(seen, target)
            for tile, depths in search.useful_tiles(seen, target):
                tile_shape = tile_shapes.of(tile, depths) if tile in known else None
                found = [us for us, _ in tile_shape.floors()] if tile_shape else []
                assert all(us >= ROUNDED * known[tile] for us in found), (problem.m, tile)
                compared += len(found)
    assert compared > 50 or not floors


@pytest.mark.sweep(4)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", SPECS)
def test_each_number_of_rows_has_the_schedule_that_it_has_alone(name, chip, no_tables):
    spec, source = spec_of(name), random.Random(name)
    target = target_for(spec, chip)
    rows = [256, *(8 * source.randint(25, 90) for _ in range(4))]
    chosen = chosen_schedules(problems_of(spec, [(each, 0) for each in rows], target), target)
    assert chosen == [choose_schedule(for_rows(spec, each), target) for each in rows]


@pytest.mark.parametrize("more", [{}, {"groups": 8}, {"a_major": "m"}])
def test_problems_of_many_rows_are_those_of_their_specs(more):
    spec = MatmulSpec(4096, 264, 520, dynamic_m=True, **more)
    target, sizes = target_for(spec, "sm_90a"), [(8, 0), (1, 8), (4097, 4224)]
    every = [Problem.of(for_rows(spec, *size), target) for size in sizes]
    assert problems_of(spec, sizes, target) == every

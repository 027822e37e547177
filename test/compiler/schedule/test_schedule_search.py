"""The search for a schedule: its bounds hold, and it finds what the whole list has."""

import random

import pytest

from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import broken_rule
from tilewright.compiler.schedule.schedule import PLAIN
from tilewright.compiler.schedule.search import search
from tilewright.compiler.schedule.search.bounds import TileBounds
from tilewright.compiler.schedule.search.candidates import candidates, sides
from tilewright.compiler.schedule.search.choice import choose_schedule, explain_schedule, target_for
from tilewright.compiler.schedule.search.search import fastest
from tilewright.compiler.schedule.search.tensor_bounds import TensorBounds
from tilewright.compiler.schedule.search.tile_shapes import TileShapes
from tilewright.compiler.spec import MatmulSpec

# Many tiles and few, long sums and short, rows that start anywhere, and what kernels do beside.
PROBLEMS = {
    "one-tile": {"m": 17, "n": 264, "k": 9000},
    "few-tiles": {"m": 630, "n": 368, "k": 4016},
    "part-of-a-wave": {"m": 443, "n": 1136, "k": 2568},
    "waves": {"m": 2582, "n": 5376, "k": 656},
    "beyond-L2": {"m": 8192, "n": 8192, "k": 4096},
    "odd-rows": {"m": 300, "n": 1033, "k": 2051},
    "beside": {"m": 2048, "n": 2048, "k": 512, "beside": ("bf16",), "epilogue_instructions": 10},
    "vectors": {"m": 1000, "n": 1112, "k": 1096, "beside_columns": ("bf16",)},
    "exchanged": {"m": 37, "n": 4096, "k": 4096, "beside_columns": ("bf16",)},
    "two-products": {"m": 1288, "n": 3104, "k": 1416, "products": 2, "epilogue_instructions": 18},
    "groups": {"m": 4096, "n": 1024, "k": 512, "groups": 16},
    "stack": {"m": 128, "n": 256, "k": 4096, "batch": 8},
    "stack-of-few-tiles": {"m": 392, "n": 520, "k": 12648, "batch": 16},
    "two-outputs": {"m": 512, "n": 768, "k": 1024, "further": ("f32",)},
    "other-majors": {"m": 520, "n": 264, "k": 328, "a_major": "m", "b_major": "n"},
    "odd-columns": {"m": 923, "n": 321, "k": 4360},
    "two-level": {"m": 900, "n": 1000, "k": 96, "sums": "two-level", "epilogue_instructions": 6},
    "any-rows": {"m": 200, "n": 1024, "k": 4096, "dynamic_m": True, "least_m": 1, "most_m": 200},
    "few-columns": {"m": 4, "n": 3592, "k": 9464},
    "residual-inside-lines": {"m": 255, "n": 13264, "k": 200, "beside": ("bf16",)},
    "groups-of-many-rows": {"m": 40000, "n": 2848, "k": 5304, "groups": 8},
    "clusters-of-odd-grids": {"m": 83, "n": 5552, "k": 2376},
    "8-bit": {"m": 900, "n": 1000, "k": 4096, "a_dtype": "e4m3", "b_dtype": "e4m3"},
}
CHIPS = ("sm_100a", "sm_90a", "h100")
ROUNDED = 1 - 1e-12
TILES = ((64, 128), (128, 128))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_ranks_before_the_bound_of_what_it_came_from(name, chip):
    """Down random paths from tiles to whole schedules, whose rank is their estimate."""
    spec = MatmulSpec(**PROBLEMS[name])
    target, source = target_for(spec, chip), random.Random(f"{name} {chip}")
    problem, found = Problem.of(spec, target), 0
    for seen in sides(problem):
        every = list(search._tile_shapes(seen, target))
        waiting = source.sample(every, min(12, len(every)))
        while waiting:
            bound, _, refine = waiting.pop()
            refined = list(refine()) if refine else []
            assert all(each[0][0] >= ROUNDED * bound[0] for each in refined)
            found += refine is None
            waiting += source.sample(refined, min(3, len(refined)))
    assert found >= 3


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_tile_has_a_lower_bound_than_the_floor_of_its_face(name, chip):
    """The floor is found without its schedules, in another order of the same sums."""
    spec = MatmulSpec(**PROBLEMS[name])
    target = target_for(spec, chip)
    bounded = 0
    for seen in sides(Problem.of(spec, target)):
        for floor, _, refine in search._tile_shapes(seen, target):
            bounds = [bound for bound, _, _ in refine()]
            assert all(bound[0] >= ROUNDED * floor[0] > 0 for bound in bounds)
            bounded += len(bounds)
    assert bounded > 10


@pytest.mark.sweep(2)
@pytest.mark.usefixtures("no_tables", "fewer_tiles")
@pytest.mark.parametrize("name", ["waves", "beside", "two-outputs", "two-products", "exchanged"])
def test_the_least_epilogue_is_that_of_the_best_way_to_store(name):
    """The closer it is, the fewer tiles are looked at."""
    spec = MatmulSpec(**PROBLEMS[name])
    target = target_for(spec, "sm_90a")
    for seen in sides(Problem.of(spec, target)):
        tile_shapes = TileShapes(seen, target)
        for m, n in ((64, 64), (64, 192), (128, 256), (256, 128)):
            tile_shape = tile_shapes.of((m, n), (64,))
            stores = tile_shape.stores_of(PLAIN) if tile_shape else []
            if tile_shape and stores:
                least = min(cycles for _, cycles in stores)
                assert tile_shape.least_epilogue_of(PLAIN) <= least * (1 + 1e-12)
                tile_shape.looks_closer()
                assert tile_shape.least_epilogue_of(PLAIN) == pytest.approx(least)


@pytest.mark.parametrize(("chip", "name"), [("sm_100a", "vectors"), ("sm_90a", "few-tiles")])
def test_the_search_finds_what_the_whole_list_has_first(name, chip):
    spec = MatmulSpec(**PROBLEMS[name])
    target = target_for(spec, chip)
    assert choose_schedule(spec, target) == explain_schedule(spec, target).schedule


def test_less_than_a_step_of_k_is_no_negative_work():
    """Beside loads of rows at any address, whose steps take long."""
    types = {"a_dtype": "e4m3", "b_dtype": "e5m2", "c_dtype": "f32", "further": ("f32",)}
    spec = MatmulSpec(26, 2944, 47, neighbours=32, **types)
    target = target_for(spec, "sm_100a")
    assert choose_schedule(spec, target) == explain_schedule(spec, target).schedule


@pytest.mark.sweep(2)
@pytest.mark.usefixtures("fewer_tiles")
@pytest.mark.parametrize("chip", CHIPS)
def test_the_search_refines_a_small_part_of_what_there_is(chip, monkeypatch):
    spec, estimated = MatmulSpec(777, 1560, 3112), []
    target = target_for(spec, chip)
    problem = Problem.of(spec, target)

    def counting(bounds, order, known):
        for total_us, stored in found_of(bounds, order, known):
            estimated.append(stored.by(order))
            yield total_us, stored

    kind = TensorBounds if target.has_tensor_memory else TileBounds
    found_of = kind.estimated
    monkeypatch.setattr(kind, "estimated", counting)
    chosen = fastest(problem, target)
    assert isinstance(chosen, Schedule) and broken_rule(problem, chosen, target) is None
    assert chosen in estimated
    assert len(estimated) < len(list(candidates(problem, target))) / 50


def test_parts_over_the_grid_are_left_out_where_a_launch_counts_tiles():
    """Their rule refuses all of them, which a search would find out of each."""
    target, parted = target_for(MatmulSpec(8, 8, 8), "sm_90a"), []
    for more in ({}, {"dynamic_m": True}, {"dynamic_m": True, "least_m": 1, "most_m": 128}):
        problem = Problem.of(MatmulSpec(100, 520, 8192, **more), target)
        found = [
            tile_shape.floors()
            for tile_shape in map(TileShapes(problem, target).of, TILES, [(64,)] * 2)
        ]
        parted.append([any(way.split_grid > 1 for _, way in floors) for floors in found])
    assert parted == [[True, True], [False, False], [False, True]]

"""Products of few rows are given to lanes where the estimate finds them faster than tiles."""

import pytest

from tilewright.compiler.driver import choose_pipeline, compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.kinds.lane_schedule import lane_schedule, lanes_us
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target


@pytest.mark.parametrize(
    ("fields", "lanes"),
    [
        ({"m": 1}, True),
        ({"m": 1, "a_dtype": "f32", "b_dtype": "f32", "c_dtype": "f32"}, True),
        ({"m": 4, "n": 1024}, True),
        ({"m": 4}, False),
        ({"m": 5, "n": 1024}, False),
        ({"m": 1, "k": 4092}, False),
        ({"m": 1, "b_major": "n"}, False),
        ({"m": 1, "ldb": 4100}, False),
        ({"m": 2, "a_major": "m"}, False),
        ({"m": 1, "a_dtype": "e4m3", "b_dtype": "e4m3"}, False),
        ({"m": 1, "dynamic_m": True}, False),
    ],
)
@pytest.mark.parametrize("target", ["h100", "sm_100a"])
def test_lanes_are_chosen_for_few_rows(fields, lanes, target):
    spec = MatmulSpec(**({"m": 1, "n": 4096, "k": 4096} | fields))
    assert ("lanes=" in choose_pipeline(spec, target)) == lanes


@pytest.mark.parametrize("target", ["h100", "sm_100a"])
@pytest.mark.parametrize("fields", [{"products": 2, "batch": 3}, {"n": 8192, "k": 8192}])
def test_one_row_of_many_weights_has_lanes(fields, target):
    spec = MatmulSpec(**({"m": 1, "n": 4096, "k": 4096} | fields))
    assert "lanes=" in choose_pipeline(spec, target)


def test_lanes_and_tiles_are_estimated_with_the_same_launch():
    """Where there is nothing to multiply, they differ by what each does before and behind it."""
    spec, target = MatmulSpec(1, 16, 64), find_target("sm_100a")
    tiles = estimate(Problem.of(spec, target), choose_schedule(spec, target), target).total_us
    assert lanes_us(spec, target) == pytest.approx(tiles, rel=0.25)


def test_a_module_that_names_its_mma_has_tiles():
    text = MatmulSpec(1, 64, 64).mlir_text()
    named = f'module attributes {{tile.mma_unit = "wgmma.mma_async"}} {{{text}}}'
    how = {"target": "sm_90a", "until": "mlir"}
    pipelines = [compile_matmul(LinalgText(each, "-"), **how).pipeline for each in (text, named)]
    assert ["lanes=" in each for each in pipelines] == [True, False]


@pytest.mark.parametrize(
    ("fields", "tile", "threads", "lanes"),
    [
        ({"n": 100, "k": 768}, (1, 4, 768), 128, 32),  # a warp a row
        ({"n": 100, "k": 4096}, (1, 1, 4096), 256, 256),
        ({"n": 100, "k": 14336}, (1, 1, 14336), 448, 448),
        ({"n": 100, "k": 28672}, (1, 1, 16384), 512, 512),  # in two steps
        ({"n": 70000, "k": 4096}, (1, 2, 4096), 256, 256),  # more than a grid has along N
        ({"n": 100, "k": 4096, "products": 2}, (1, 2, 4096), 256, 256),
        ({"m": 1, "n": 6000, "k": 1176}, (1, 4, 1280), 128, 32),
        ({"m": 3, "n": 6000, "k": 1176}, (3, 16, 1280), 128, 32),  # four columns a lane
        ({"m": 3, "n": 600, "k": 1176}, (3, 8, 1280), 128, 32),
        ({"m": 4, "n": 6000, "k": 1528}, (4, 8, 1536), 128, 32),
        ({"m": 4, "n": 6000, "k": 1528, "products": 2}, (4, 4, 2048), 128, 128),
        ({"m": 4, "n": 6000, "k": 4096}, (4, 2, 2048), 128, 128),  # in two steps
        ({"m": 4, "n": 100, "k": 4096}, (4, 2, 4096), 128, 128),
        ({"m": 3, "n": 6000, "k": 4104}, (3, 2, 5120), 128, 128),  # the least left out
    ],
)
def test_a_cta_asks_for_whole_rows(fields, tile, threads, lanes):
    found = lane_schedule(MatmulSpec(**({"m": 1} | fields)), find_target("sm_90a"))
    assert (found.tile, found.threads, found.lanes) == (tile, threads, lanes)

"""Which schedules load tiles that hang over A or B without the rows that are not there."""

from dataclasses import replace
from itertools import islice

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.edge_boxes import cuts_edges, whole_boxes
from tilewright.compiler.schedule.estimates.estimate import total_us
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.schedule import PLAIN
from tilewright.compiler.schedule.search.choice import schedules_by_rank, target_for
from tilewright.compiler.schedule.short_steps import passes_of
from tilewright.compiler.spec import MatmulSpec

SPEC = MatmulSpec(1119, 1040, 1024)
TILE = PLAIN.but(tile=(128, 80, 64), stages=8)


def taken(schedule=TILE, gpu="h200", **changes):
    spec = replace(SPEC, **changes)
    target = target_for(spec, gpu)
    return cuts_edges(Problem.of(spec, target), schedule, target)


def test_a_tile_that_hangs_over_leaves_rows_out():
    assert taken()
    assert taken(gpu="h100")
    assert not taken(gpu="sm_100a")  # where nobody has measured it
    assert taken(TILE.but(tile=(80, 128, 64), swap=True))
    assert not taken(m=1152)
    assert taken(m=1024, n=1032)
    assert not taken(m=1024)


@pytest.mark.parametrize(
    ("m", "cluster", "hangs"), [(1152, (2, 1), True), (1152, (3, 1), False), (1024, (2, 1), False)]
)
def test_a_cluster_has_ctas_behind_the_last_tile(m, cluster, hangs):
    assert taken(TILE.but(cluster=cluster), m=m) == hangs


def test_rows_along_m_in_memory_and_parts_by_no_eights_are_loaded_whole():
    assert not taken(n=1024, schedule=TILE.but(tile=(128, 128, 64)), a_major="m", m=1120)
    halves = TILE.but(tile=(128, 136, 64), cluster=(8, 1))
    assert not taken(halves, m=1024)
    assert taken(halves.but(cluster=(1, 1)), m=1024)


def test_as_many_steps_as_slots_are_whole_boxes():
    assert not taken(k=512)
    assert taken(k=520)


def whole(schedule=TILE, **changes):
    target = target_for(SPEC, "h200")
    problem = Problem.of(replace(SPEC, **changes), target)
    return whole_boxes(problem.seen_by(schedule), schedule, target)


def test_rows_outside_are_estimated_where_boxes_have_them():
    first = 231424 // (208 * 128) / 100  # of 100 steps those that fill a slot for the first time
    assert whole(k=6400) == (first, 1)
    assert whole(m=1032, n=1032, k=6400) == (first, first)
    assert whole(TILE.but(split_grid=2), m=1032, k=6400) == (2 * first, 1)
    assert whole(m=1032, n=72, k=6400) == (first, 1)  # the only tile of B
    everywhere = (
        whole(k=512),
        whole(TILE.but(scheduler="static"), k=6400),
        whole(m=1024, k=6400),
        whole(k=6400, batch=2),
    )
    assert set(everywhere) == {(1, 1)}


def test_a_cta_of_one_tile_is_estimated_to_load_few_rows_outside():
    target, shorter = target_for(SPEC, "h200"), []
    for tiles in (TILE, TILE.but(scheduler="static")):
        problems = [Problem.of(replace(SPEC, m=m, k=16384), target) for m in (1032, 1152)]
        less, more = (total_us(each, tiles, target) for each in problems)
        shorter.append(less / more)
    assert shorter[0] < 0.99 and shorter[0] < shorter[1] - 0.02


def test_a_cta_has_one_tile():
    assert not taken(TILE.but(scheduler="static"), k=4096)


@pytest.mark.parametrize("parts", [{"split_k": 2}, {"split_grid": 2}])
def test_of_parts_of_k_a_tile_hangs_far_over(parts):
    halves = TILE.but(**parts)
    assert not taken(halves, k=4096)  # 33 rows of 128
    assert taken(halves, k=4096, m=1100)
    assert taken(halves, k=4096, m=1024, n=1080)  # 40 columns of 80
    assert taken(halves.but(cluster=(1, 2)), k=4096, m=1024)  # the fourteenth tile, which is empty
    assert not taken(halves, k=1024, m=1100)  # whose parts have as many steps as there are slots


@pytest.mark.parametrize(
    "changes", [{"dynamic_m": True}, {"batch": 2}, {"groups": 2}, {"k": 1028}, {"products": 2}]
)
def test_other_products_are_loaded_whole(changes):
    assert not taken(**changes)


def test_the_pass_takes_a_stack_of_one_matrix_as_the_rule_does():
    assert taken(batch=1)
    spec, target = replace(SPEC, batch=1), target_for(SPEC, "h200")
    text = passes_of(Problem.of(spec, target), TILE, target)
    assert text.endswith(",edge-boxes")
    compile_matmul(spec, target="h200", pipeline=text, until="mlir")


@pytest.mark.parametrize("sizes", [(1119, 1040, 14336), (300, 1992, 1096), (97, 5016, 3000)])
def test_the_pass_takes_what_the_rule_chooses(sizes):
    """And the chosen schedule has it, one with zeros behind K, too."""
    spec = MatmulSpec(*sizes)
    target = target_for(spec, "h200")
    problem, passes = Problem.of(spec, target), []
    for schedule in islice(schedules_by_rank(spec, target), 0, 24, 8):
        passes.append(passes_of(problem, schedule, target))
        compile_matmul(spec, target="h200", pipeline=passes[-1], until="mlir")
    assert any(each.endswith(",edge-boxes") for each in passes)

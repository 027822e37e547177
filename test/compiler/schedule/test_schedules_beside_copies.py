"""Schedules of kernels whose threads copy operands that TMA can't address."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.estimates.costs import copy_cycles
from tilewright.compiler.schedule.kinds.scaled_schedule import estimates
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import RULES
from tilewright.compiler.schedule.search import choice
from tilewright.compiler.schedule.search.search import fastest
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

HOPPER, BLACKWELL = find_target("sm_90a"), find_target("sm_100a")


@pytest.mark.parametrize(
    ("shape", "tile", "reason"),
    [
        (
            (512, 512, 100),
            (192, 144, 64),
            "72 registers a thread of 3 warpgroups leave too few for threads that copy what TMA "
            "can't address",
        ),
        (
            (512, 1501, 100),
            (128, 256, 64),
            "256 columns, each stored by itself, leave too few registers beside threads that copy "
            "what TMA can't address, 240 don't",
        ),
        ((512, 1501, 100), (128, 240, 64), None),
        ((512, 1501, 100), (256, 128, 64), None),
        ((512, 1502, 100), (128, 256, 64), None),
        ((512, 1501, 104), (128, 256, 64), None),
    ],
)
def test_threads_that_copy_leave_fewer_registers_to_others(shape, tile, reason):
    problem = Problem.of(MatmulSpec(*shape), HOPPER)
    assert RULES["accumulator-registers"](problem, Schedule(tile), HOPPER) == reason


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "spec",
    [
        MatmulSpec(8200, 1501, 37),
        MatmulSpec(8200, 1501, 36, c_dtype="f32"),
        MatmulSpec(8200, 1501, 72, "e4m3", "e4m3", "f32"),
        MatmulSpec(8200, 1501, 18, "tf32", "tf32", "f32"),
    ],
)
def test_the_choice_for_odd_rows_of_c_spills_no_registers(monkeypatch, spec):
    monkeypatch.setattr(choice, "tuned_schedule", lambda problem, chip: None)
    assert compile_matmul(spec, target="sm_90a").assembled.cubin


def test_pairs_whose_ctas_each_copy_half_of_b_are_chosen_where_copies_take_longest():
    """128 and half of 256 rows a CTA instead of 128 and 256: two thirds of the copies."""
    spec = MatmulSpec(4096, 4096, 4095)
    chosen = choice.choose_schedule(spec, BLACKWELL)
    assert (chosen.tile[:2], chosen.cluster, chosen.pair) == ((128, 256), (2, 1), True)
    problem = Problem.of(spec, BLACKWELL)
    cycles = [
        copy_cycles(problem, Schedule((128, 256, 64), pair=pair), BLACKWELL)
        for pair in (True, False)
    ]
    assert cycles[0] / cycles[1] == pytest.approx(2 / 3)


def test_packed_rows_that_tma_cannot_address_are_counted_as_copies_of_pairs():
    short, whole = (
        estimates(MatmulSpec(4096, 4096, k, "mxfp6", "mxfp6"), BLACKWELL) for k in (4064, 4096)
    )
    assert short[0].schedule.pair and short[0].bound == "threads that copy"
    assert short[0].total_us > 2 * whole[0].total_us and whole[0].bound == "tensor core"


@pytest.mark.parametrize(
    ("k", "target", "least", "most"),
    [(1100, HOPPER, 120, 163), (1104, HOPPER, 190, 227), (1100, BLACKWELL, 170, 227)],
)
def test_rings_leave_l1_room_for_what_threads_copy(k, target, least, most):
    problem = Problem.of(MatmulSpec(600, 5000, k), target)
    schedule = fastest(problem, target)
    seen = problem.seen_by(schedule)
    used = schedule.stages * seen.stage_bytes(schedule) + seen.staging_bytes(schedule)
    assert least < used / 1024 <= most

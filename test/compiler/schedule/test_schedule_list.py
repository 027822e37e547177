"""The list of all candidates: the search gives what it gives, and it says why of each."""

import random
from collections import Counter

import pytest

from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.rules.rules import RULES, broken_rule, broken_rules
from tilewright.compiler.schedule.search.candidates import candidates, rank
from tilewright.compiler.schedule.search.choice import choose_schedule, explain_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

TARGET = find_target("sm_100a")
HOPPER = find_target("sm_90a")
pytestmark = pytest.mark.usefixtures("no_tables")


# Every way that a shape can be odd: tiny, long, flat, ragged, bound by DRAM, by L2, by the MMA; too
# wide for a grid of narrow tiles, too wide for any grid.
SHAPES = """
    1x1x1 7x9x20000 33x77x51 64x48x32 77x33x51 96x96x96 100x100x100 256x256x256 300x520x136
    512x512x512 512x768x320 640x640x8192 999x1001x1003 1000x1112x1096 1024x1024x1024
    1536x1536x1536 2048x2048x64 2048x2048x2048 3000x200x1000 200x3000x1000 3072x768x768
    4096x4096x1 4096x1x4096 1x4096x4096 4097x4095x333 4096x4096x4096 4096x11008x4096
    5120x5120x5120 8192x16x8192 8192x8192x8192 12288x4096x4096 128x4096x4096 128x128x65536
    256x4096x14336 16384x512x128 16384x16384x1024 60000x64x64 18944x256x64 16x65536x4096
    65536x16x4096 128x9000000x64 64x20000000x64
""".split()


def drawn_spec(seed: int) -> MatmulSpec:
    draw = random.Random(seed)
    extents = [
        draw.choice(
            (draw.randint(1, 300), 8 * draw.randint(1, 1500), int(2 ** draw.uniform(0, 14)))
        )
        for _ in "mnk"
    ]
    types = {"a_dtype": "f16", "b_dtype": "f16", "c_dtype": draw.choice(["f16", "f32"])}
    return MatmulSpec(*extents, **types, a_major=draw.choice("kkm"), b_major=draw.choice("kkn"))


def name_of(spec: MatmulSpec) -> str:
    return f"{spec.m}x{spec.n}x{spec.k}-{spec.c_dtype}-{spec.a_major}{spec.b_major}"


DRAWN = [drawn_spec(seed) for seed in range(60)]
SPLIT = [  # those of which K goes in parts of a number that the order or the cluster settles
    MatmulSpec(2, 1, 1000, a_dtype="f16", b_dtype="f16", a_major="m"),
    MatmulSpec(98, 512, 16384, a_dtype="f16", b_dtype="f16"),
]


@pytest.mark.sweep(24)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_quick_choice_is_the_one_that_the_whole_list_gives(shape):
    spec = MatmulSpec(*(int(extent) for extent in shape.split("x")))
    assert choose_schedule(spec, TARGET) == explain_schedule(spec, TARGET).schedule


@pytest.mark.sweep(14)
@pytest.mark.usefixtures("fewer_tiles")
@pytest.mark.parametrize("shape", SHAPES[::3])
def test_the_quick_choice_for_hopper_is_the_one_that_the_whole_list_gives(shape):
    spec = MatmulSpec(*(int(extent) for extent in shape.split("x")))
    assert choose_schedule(spec, HOPPER) == explain_schedule(spec, HOPPER).schedule


@pytest.mark.sweep(30)
@pytest.mark.parametrize("spec", DRAWN, ids=name_of)
def test_the_quick_choice_of_any_spec_is_the_one_that_the_whole_list_gives(spec):
    assert choose_schedule(spec, TARGET) == explain_schedule(spec, TARGET).schedule


@pytest.mark.parametrize("spec", SPLIT, ids=name_of)
def test_the_quick_choice_of_parts_is_the_one_that_the_whole_list_gives(spec):
    assert choose_schedule(spec, TARGET) == explain_schedule(spec, TARGET).schedule


@pytest.mark.sweep(30)
@pytest.mark.parametrize("spec", DRAWN, ids=name_of)
def test_no_legal_candidate_is_estimated_faster_than_the_choice(spec):
    problem = Problem.of(spec, TARGET)
    chosen = choose_schedule(spec, TARGET)
    assert broken_rule(problem, chosen, TARGET) is None
    legal = [c for c in candidates(problem, TARGET) if broken_rule(problem, c, TARGET) is None]
    fastest = min(rank(estimate(problem, each, TARGET).total_us, each) for each in legal)
    assert rank(estimate(problem, chosen, TARGET).total_us, chosen) == fastest


def total_us(found):
    return found.estimate.total_us


def ranked(found):
    return rank(total_us(found), found.schedule)


@pytest.mark.sweep(30)
@pytest.mark.parametrize("spec", DRAWN, ids=name_of)
def test_every_candidate_is_chosen_or_rejected_once_for_a_reason_that_holds(spec):
    problem, choice = Problem.of(spec, TARGET), explain_schedule(spec, TARGET)
    seen = Counter([choice.schedule, *(rejected.schedule for rejected in choice.rejected)])
    assert seen == Counter(candidates(problem, TARGET))
    for rejected in choice.rejected:
        if rejected.rule == "estimate":
            assert ranked(rejected) >= ranked(choice)
            assert ("within the margin" in rejected.reason) == (
                total_us(rejected) < total_us(choice)
            )
        else:
            assert (
                RULES[rejected.rule](problem.seen_by(rejected.schedule), rejected.schedule, TARGET)
                == rejected.reason
            )
    for rejected in choice.rejected[::5]:  # each rule asked anew, of the schedule as a whole
        broken = (rejected.rule, rejected.reason) if rejected.estimate is None else None
        assert broken_rule(problem, rejected.schedule, TARGET) == broken


@pytest.mark.sweep(4)
@pytest.mark.usefixtures("fewer_tiles")
@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (777, 1560, 8192), (300, 520, 51)])
def test_what_a_step_settles_is_all_that_its_rules_ask_for(sizes):
    """The list asks the rules of a step once; here they are asked of each schedule as a whole."""
    problem = Problem.of(MatmulSpec(*sizes), HOPPER)
    first_broken = broken_rules(problem, HOPPER)
    for number, schedule in enumerate(candidates(problem, HOPPER)):
        found = first_broken(schedule)
        assert number % 17 or found == broken_rule(problem, schedule, HOPPER)

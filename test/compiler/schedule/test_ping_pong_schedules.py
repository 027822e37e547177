"""When the schedule has two consumers that alternate, and what the estimate says of them."""

from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import RULES
from tilewright.compiler.schedule.search import choice as schedule_module
from tilewright.compiler.schedule.search.choice import candidates, choose_schedule, explain_schedule
from tilewright.compiler.schedule.tuned_schedules import schedule_of
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

HOPPER, BLACKWELL = find_target("sm_90a"), find_target("sm_100a")
ALTERNATING = Schedule(
    (128, 128, 64), 6, scheduler="static", order="n", staging=(32, 4), ping_pong=True
)


@pytest.fixture(autouse=True)
def no_tables(monkeypatch):
    """The estimate decides."""
    monkeypatch.setattr(schedule_module, "tuned_schedule", lambda problem, chip: None)


def problem(*shape):
    return Problem.of(MatmulSpec(*shape), HOPPER)


@pytest.mark.parametrize("shape", [(4096, 4096, 256), (8192, 8192, 512), (4096, 4096, 512)])
def test_a_short_sum_with_many_tiles_has_consumers_that_alternate(shape):
    """An H200 was 9 to 29% faster with them (docs/hopper.md)."""
    assert choose_schedule(MatmulSpec(*shape), HOPPER).ping_pong


@pytest.mark.parametrize(
    "shape", [(8192, 1024, 8192), (4096, 4096, 14336), (64, 4096, 4096), (1024, 1024, 1024)]
)
def test_a_long_sum_or_one_tile_a_cta_has_one_consumer(shape):
    assert not choose_schedule(MatmulSpec(*shape), HOPPER).ping_pong


@pytest.mark.parametrize("shape", [(8192, 14336, 4096), (4096, 11008, 4096), (8192, 8192, 8192)])
@pytest.mark.parametrize("instructions", [4, 18])
def test_two_products_have_consumers_that_alternate(shape, instructions):
    """An H200 was 2 to 9% faster with them for silu(gate) * up, fast and exact, which one computes
    while the other multiplies (benchmarks/swiglu.py)."""
    spec = MatmulSpec(*shape, epilogue_instructions=instructions)
    assert choose_schedule(replace(spec, products=2), HOPPER).ping_pong


def test_consumers_do_not_alternate_where_their_code_exceeds_the_cache_of_instructions():
    """An H100 took 203 us for the gradient through GELU with tiles of 128x128 in turns, whose code
    is 177 kB, and 108 with tiles of 64x128 (benchmarks/epilogues.py)."""
    spec = MatmulSpec(8192, 3072, 768, b_major="n", beside=("bf16",), epilogue_instructions=14)
    m, n, _ = choose_schedule(spec, HOPPER).tile
    assert m * n < 128 * 128
    short = replace(spec, epilogue_instructions=6)
    assert choose_schedule(short, HOPPER).tile[:2] == (128, 128)
    problems = [Problem.of(each, HOPPER) for each in (spec, short)]
    long_us, short_us = (estimate(each, ALTERNATING, HOPPER).total_us for each in problems)
    assert 2.2 * short_us < long_us


@pytest.mark.sweep(6)
@pytest.mark.usefixtures("fewer_tiles")
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"products": 2, "epilogue_instructions": 18},
        {"beside": ("bf16",)},
        {"beside": ("bf16",), "epilogue_instructions": 14},
    ],
    ids=["plain", "two products", "residual", "long"],
)
@pytest.mark.parametrize("shape", [(4096, 4096, 512), (3000, 5000, 264), (1000, 1112, 1096)])
def test_the_quick_choice_is_the_one_that_the_whole_list_gives(shape, kind):
    spec = MatmulSpec(*shape, **kind)
    assert choose_schedule(spec, HOPPER) == explain_schedule(spec, HOPPER).schedule


def test_alternating_hides_stores_and_no_products():
    """Tiles of a CTA one after the other, and no faster than their main loops."""
    shape = problem(8192, 8192, 512)
    two = estimate(shape, ALTERNATING, HOPPER)
    one = estimate(shape, replace(ALTERNATING, ping_pong=False), HOPPER)
    assert two.rounds * two.main_loop_us < two.work_us < one.work_us


def test_a_single_tile_hides_nothing():
    shape = problem(128, 128, 512)
    two = estimate(shape, ALTERNATING, HOPPER)
    one = estimate(shape, replace(ALTERNATING, ping_pong=False, staging=(32, 2)), HOPPER)
    assert two.work_us == pytest.approx(one.work_us)


@pytest.mark.parametrize(
    ("target", "change", "reason"),
    [
        (
            BLACKWELL,
            {},
            "sm_100a has accumulators in tensor memory, of which persistence takes two",
        ),
        (
            HOPPER,
            {"scheduler": "none"},
            "consumers take turns where a CTA has several tiles, got scheduler none",
        ),
        (
            HOPPER,
            {"tile": (256, 64, 64)},
            "tiles of 64 columns were slower than 128x128 in turns on an H200",
        ),
        (HOPPER, {"tile": (64, 256, 64)}, None),
    ],
)
def test_what_two_consumers_need(target, change, reason):
    found = RULES["alternating-consumers"](
        problem(4096, 4096, 512), replace(ALTERNATING, **change), target
    )
    assert found == reason


def test_only_chips_with_accumulators_in_registers_have_such_candidates():
    shape = problem(512, 768, 320)
    assert any(each.ping_pong for each in candidates(shape, HOPPER))
    assert not any(each.ping_pong for each in candidates(shape, BLACKWELL))


def test_the_pipeline_ends_in_the_pass_and_compiles():
    text = ALTERNATING.pipeline()
    assert text.endswith("warp-specialization,persistence{order=n},ping-pong")
    assert "static along n, ping-pong, staged 32x4" in ALTERNATING.label()
    compile_matmul(MatmulSpec(4096, 4096, 512), target="sm_90a", pipeline=text, until="mlir")


def test_an_entry_without_the_field_has_one_consumer():
    """Tables that were measured before there were two."""
    assert not schedule_of({"tile": [128, 128, 64], "stages": 6}).ping_pong

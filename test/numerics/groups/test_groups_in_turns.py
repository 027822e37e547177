"""Two consumers in turns with groups of K: each skips as many slots as the other's tile has."""

from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SPEC = MatmulSpec(40, 40, 300, a_major="m", b_major="n", groups=7, group_axis="k", c_dtype="f32")
PERMUTES = (
    "tiling{tile=64x32x64},tma-insertion,swizzle-selection,epilogue-staging,pipelining{stages=3},"
    "warp-specialization,persistence{ctas=3},ping-pong"
)
HOW = {
    "three stages": PERMUTES,
    "two stages": PERMUTES.replace("stages=3", "stages=2"),
    "one CTA": PERMUTES.replace("ctas=3", "ctas=1"),
    "more CTAs than tiles": PERMUTES.replace("ctas=3", "ctas=60"),
    "clusters": PERMUTES.replace("pipelining", "clustering{shape=2x1},pipelining").replace(
        "=3}", "=4}"
    ),
    "a curve": PERMUTES.replace("ctas=3", "order=hilbert"),
    "stores by threads": PERMUTES.replace("epilogue-staging,", ""),
    "copies by threads": PERMUTES.replace("tma-insertion", "copy-insertion"),
}


@pytest.mark.sweep(5)
@pytest.mark.array(1, how=HOW, ordered=[True, False], seed=[0, 1])
def test_each_consumer_finds_its_own_slots(check_matmul, how, ordered, seed):
    spec = replace(SPEC, ordered=ordered)
    check_matmul(spec, pipeline=HOW[how], target="sm_90a", seed=seed)


def test_one_group_of_all_and_groups_of_nothing(check_matmul):
    check_matmul(replace(SPEC, groups=1, k=520), pipeline=PERMUTES, target="sm_90a")
    check_matmul(replace(SPEC, groups=19, k=20), pipeline=PERMUTES, target="sm_90a")


@pytest.fixture(scope="module")
def kernel():
    how = {"stop_after": "ping-pong", "until": "mlir", "target": "sm_90a"}
    return compile_matmul(SPEC, pipeline=PERMUTES, **how).mlir.splitlines()


def line_of(kernel, text, number=0):
    return [at for at, line in enumerate(kernel) if text in line][number]


def refuse(kernel, number, before, after, message):
    lines = list(kernel)
    assert before in lines[number]
    lines[number] = lines[number].replace(before, after)
    with pytest.raises(CompileError, match=message):
        run_passes_on_text("\n".join(lines), "edited", "assign-threads")


@pytest.mark.parametrize(
    ("number", "ahead", "message"),
    [
        (0, -1, "ahead must be 1, or -1 where there is a turn before, got -1 in turn 0"),
        (1, 2, "ahead must be 1, or -1 where there is a turn before, got 2 in turn 1"),
        (1, 1, "depth: turn 1 must skip the tile -1 turns on, got 1; its slots are others"),
    ],
)
def test_slots_of_another_tile_than_that_beside_are_refused(kernel, number, ahead, message):
    at = line_of(kernel, "pipe.other_tile", number)
    refuse(kernel, at, f"ahead = {-1 if number else 1} ", f"ahead = {ahead} ", message)


def test_slots_that_are_counted_by_the_wrong_tile_are_refused(kernel):
    skip = line_of(kernel, "pipe.skip")
    loop = skip - 1
    steps = kernel[loop].split(" to ")[1].split(" ")[0]
    rule = "depth: a loop that skips slots must take the other agent's steps, got its own tile"
    refuse(kernel, loop, f" to {steps} ", " to %group_steps ", rule)


def test_slots_that_are_skipped_at_once_are_refused(kernel):
    """As many as the largest group may have."""
    at = line_of(kernel, "pipe.skip", 1)
    lines = list(kernel)
    skip = lines[at].replace("slots = 1 ", "slots = 5 ").strip()
    lines[at - 1 : at + 2] = [skip]
    rule = "depth: slots of another agent's group must be skipped by a loop of its steps, got 5"
    with pytest.raises(CompileError, match=rule):
        run_passes_on_text("\n".join(lines), "edited", "assign-threads")


def test_a_place_of_another_tile_stands_in_a_loop_of_turns(kernel):
    text = "\n".join(kernel).replace('"pipe.for_each_turn"() ({', '"tile.for_each_tile"() ({')
    for turn in range(2):
        text = text.replace(f", turn = {turn} : i64, turns = 2 : i64", "")
    with pytest.raises(CompileError, match=r"must stand in a pipe\.for_each_turn, got tile"):
        run_passes_on_text(text, "edited", "assign-threads")

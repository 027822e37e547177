"""Barriers wait for as many arrivals as there are, in presets and prefixes; others are refused."""

import pytest
from edited_ir import CLAIMS, ROLES, TURNS, change, refusal

from tilewright.compiler.pipeline import (
    DEFAULT_PIPELINE,
    PassLog,
    all_presets,
    check_plan,
    complete_pipeline,
    parse_pipeline,
    presets_of,
    run_passes,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import make_context
from tilewright.dialects.mlir import ir
from tilewright.passes.base import TARGET_ATTRIBUTE

TARGETS = ("sm_100a", "sm_90a")
TILE = "tiling{tile=128x64x64},tma-insertion"
PIPELINES = {
    "threads copy": "tiling{tile=128x64x64}",
    "split K": f"{TILE},split-k{{parts=2}},pipelining",
    "a cluster of eight": f"{TILE},clustering{{shape=4x2}},pipelining,warp-specialization",
    "along N": f"{TILE},clustering{{shape=1x4}},pipelining,warp-specialization,persistence",
}
SHAPES = {"TMA": (300, 520, 328), "threads": (77, 130, 311)}


def plan(shape, target, **chosen):
    """Plan a matmul and count its barriers; the pipeline does so by itself, this once more."""
    calls = complete_pipeline(
        chosen.get("pipeline"), chosen.get("preset"), "plan-memory", lower=False
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(*shape).mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)
        run_passes(module, calls, PassLog())
        check_plan(module)


@pytest.mark.parametrize("preset", all_presets())
def test_the_barriers_of_a_preset_count_what_arrives(preset):
    plan(SHAPES["TMA"], "sm_90a" if preset in presets_of("sm_90a") else "sm_100a", preset=preset)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", range(1, 1 + len(parse_pipeline(DEFAULT_PIPELINE))))
def test_the_barriers_of_a_prefix_count_what_arrives(length, target):
    calls = parse_pipeline(DEFAULT_PIPELINE)[:length]
    plan(SHAPES["TMA"], target, pipeline=",".join(map(str, calls)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PIPELINES)
def test_the_barriers_of_a_cluster_count_what_arrives(name, target):
    plan((1024, 1024, 320), target, pipeline=PIPELINES[name])


@pytest.mark.parametrize("target", TARGETS)
def test_the_barriers_of_slots_that_threads_fill_count_their_warps(target):
    pipeline = f"{TILE},pipelining{{stages=4}},warp-specialization"
    plan(SHAPES["threads"], target, pipeline=pipeline)


def count(number, of):
    return change("sm.barriers", "arrivals", of, number)


def wrong(label, arrives, waits):
    return (
        f"sm.barriers: arrivals: {label!r} gets {arrives} in a phase, got a count of {waits}; wait "
        "for as many"
    )


PAIRS = "normalize,tiling{tile=128x64x64},tma-insertion,clustering{shape=2x2 pair=true}"
ROWS = {
    "full of operands": (ROLES, count(0, 2), wrong("operands.full", 1, 2)),
    "empty of operands": (ROLES, count(1, 2), wrong("operands.empty", 1, 2)),
    "full of sums": (ROLES, count(2, 4), wrong("accumulator.full", 1, 4)),
    "empty of sums": (ROLES, count(3, 3), wrong("accumulator.empty", 4, 3)),
    "full of claims": (CLAIMS, count(4, 2), wrong("claims.full", 1, 2)),
    "empty of claims": (CLAIMS, count(5, 1), wrong("claims.empty", 7, 1)),
    "a cluster's loads": (PAIRS, count(1, 1), wrong("operands.empty", 2, 1)),
    "copies under way": (
        ROLES,
        change("sm.ring", "under_way", 1),
        "sm.ring: under way: at most 0 of 2 slots here, got 1; lower it",
    ),
    "two arrivals of a commit": (
        "normalize,tiling",
        count(0, 2),
        "sm.barriers: done: must have one slot and one arrival, got 1 and 2",
    ),
    "nobody who tells that sums are done": (
        "normalize,tiling",
        lambda lines: [line.replace('"mma.done"', '"done"') for line in lines],
        "sm.columns: done: sums in no ring need the barrier 'mma.done', got none; add it",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_barrier_that_waits_for_another_number_is_refused(name):
    passes, edit, message = ROWS[name]
    found, line = refusal(f"{passes},plan-memory", edit)
    assert found == message
    assert message.partition(":")[0] in line


def test_consumers_that_take_turns_arrive_by_their_own_warps():
    found, _ = refusal(f"{TURNS},plan-memory", count(1, 8), "sm_90a")
    assert found == wrong("operands.empty", 4, 8)

"""Waits and arrivals of barriers fit together and with their counts, or are refused.

The pipeline checks both by itself; here it is done once more, so that no check may be left out.
"""

import re

import pytest
from edited_ir import (
    CLAIMS,
    PERMUTES,
    ROLES,
    change,
    drop,
    drop_lines,
    insert,
    move,
    move_lines,
    place,
    refusal,
    replace,
)

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
from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import ir
from tilewright.passes.base import TARGET_ATTRIBUTE
from tilewright.passes.checks.barriers.barriers import check_barriers

TARGETS = ("sm_100a", "sm_90a")
TILE = "tiling{tile=128x64x64},tma-insertion"
PIPELINES = {
    "threads copy": "tiling{tile=128x64x64}",
    "split K": f"{TILE},split-k{{parts=2}},pipelining",
    "a cluster of eight": f"{TILE},clustering{{shape=4x2}},pipelining,warp-specialization",
    "along N": f"{TILE},clustering{{shape=1x4}},pipelining,warp-specialization,persistence",
}
SHAPES = {"TMA": (300, 520, 328), "threads": (77, 130, 311)}


CHECKS = {"plan-memory": check_plan, "pipes-to-barriers": check_barriers}


def count(shape, target, **chosen):
    """Count what arrives at the barriers of the plan, and in the kernel who waits for it."""
    *_, last = CHECKS
    calls = complete_pipeline(chosen.get("pipeline"), chosen.get("preset"), last, lower=False)
    seen = []

    def check(event):
        if event.name in CHECKS:
            seen.append(event.name)
            CHECKS[event.name](module)

    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(*shape).mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)
        run_passes(module, calls, PassLog(), check)
    assert seen == list(CHECKS)


@pytest.mark.parametrize("preset", all_presets())
def test_who_waits_and_who_arrives_in_a_preset_fit_together(preset):
    count(SHAPES["TMA"], "sm_90a" if preset in presets_of("sm_90a") else "sm_100a", preset=preset)


def test_consumers_in_turns_count_once_where_a_tile_has_one_slot_too():
    """The other's tile is passed by with one step then, as a slot of one's own is left."""
    count((72, 40, 56), "sm_90a", preset="h8")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", range(1, 1 + len(parse_pipeline(DEFAULT_PIPELINE))))
def test_who_waits_and_who_arrives_in_a_prefix_fit_together(length, target):
    calls = parse_pipeline(DEFAULT_PIPELINE)[:length]
    count(SHAPES["TMA"], target, pipeline=",".join(map(str, calls)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PIPELINES)
def test_who_waits_and_who_arrives_in_a_cluster_fit_together(name, target):
    count((1024, 1024, 320), target, pipeline=PIPELINES[name])


def test_who_waits_and_who_arrives_in_a_fallback_cluster_fit_together():
    either = "clustering{shape=4x2 fallback=2x1},pipelining,warp-specialization"
    count((1024, 1024, 320), "sm_100a", pipeline=f"{TILE},{either}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cluster", ["1x1", "2x1", "2x2"])
def test_who_waits_and_who_arrives_beside_threads_that_copy_fit_together(target, cluster):
    roles = f"clustering{{shape={cluster}}},pipelining{{stages=4}},warp-specialization"
    count(SHAPES["threads"], target, pipeline=f"{TILE},{roles}")


def arrivals(label, arrive, waits):
    return (
        f"sm.barriers: arrivals: {label!r} gets {arrive} in a phase, got a count of {waits}; wait "
        "for as many"
    )


def again(text):
    """The first line with a text twice."""

    def edit(lines):
        at = place(lines, text, 0)
        return [*lines[: at + 1], *lines[at:]]

    return edit


def bytes_of(op, label, brought, expected):
    return (
        f"{op}: bytes: {label!r} gets {brought} bytes at a slot, got {expected} expected; expect "
        "as many as the loads bring"
    )


SINGLE = "normalize,tiling{tile=128x64x64},tma-insertion"
PARTS = f"{SINGLE},split-k{{parts=2}},warp-specialization"
PAIRS = f"{SINGLE},clustering{{shape=4x2 pair=true}},warp-specialization"
EITHER = PAIRS.replace("pair=true", "pair=true fallback=2x1")
EXPECT = "sm.arrive_expect_tx"
READ = '"sm.read_position"(%'
TAKE = "take that one"


def elsewhere(lines):
    """Tensor memory's address goes to byte 8."""
    at = place(lines, '"sm.shared_address"', 0) - 1
    return [*lines[:at], re.sub(r"constant \d+", "constant 8", lines[at]), *lines[at + 1 :]]


INIT = "sm.barrier_init"
ONCE = "1 allocation of tensor memory needs as many"
ROWS = {
    "a barrier that nobody initialises": (
        ROLES,
        drop(f'"{INIT}"'),
        "sm.barriers: init: 'operands.full' of slot 0 must be initialised in sm.prologue or "
        f"sm.early, got no {INIT}; add it",
    ),
    "a barrier that is initialised twice": (
        ROLES,
        again(f'"{INIT}"'),
        f"{INIT}: init: 'operands.full' of slot 0 must be initialised once, got a second time; "
        "drop it",
    ),
    "a barrier that is initialised with another count": (
        ROLES,
        change(INIT, "count", 2),
        f"{INIT}: init: 'operands.full' counts 1 arrivals, got 2; take as many",
    ),
    "a barrier that is initialised with another count in a fallback cluster": (
        EITHER,
        replace("count = 3 : i64, fallback = 1 : i64", "count = 3 : i64, fallback = 2 : i64"),
        f"{INIT}: init: 'operands.empty' counts 1 arrivals in a fallback cluster, got 2; take as "
        "many",
    ),
    "a slot that is empty as late in a fallback cluster as in the preferred one": (
        EITHER,
        replace("arrivals = 3 : i64, fallback = 1 : i64", "arrivals = 3 : i64"),
        arrivals("operands.empty", 1, 3),
    ),
    "a CTA that does not know in which cluster it is": (
        EITHER,
        drop('"sm.in_preferred"'),
        "tile.kernel: a kernel with a fallback must say by sm.in_preferred in which cluster it "
        "runs, got none; run pipes-to-barriers",
    ),
    "barriers that all lanes initialise": (
        ROLES,
        replace('by = "lane"', 'by = "warp"'),
        f"{INIT}: init: a lane of sm.prologue or sm.early must do it, got 'warp' in sm.prologue; "
        "put it there",
    ),
    "barriers that are not fenced": (
        ROLES,
        drop('"mbarrier_init"'),
        f'{INIT}: init: must be fenced, got no sm.fence of "mbarrier_init" after it; add one',
    ),
    "threads that do not meet before the program": (
        ROLES,
        drop('"sm.cta_barrier"'),
        "sm.tmem_base: meeting: all threads must meet by sm.cta_barrier before the program, got "
        "sm.tmem_base; add it",
    ),
    "a CTA of a pair that asks for tensor memory before the other is there": (
        PAIRS,
        move_lines('"sm.first_warp"', "})", '"sm.cluster_barrier"'),
        "sm.tmem_alloc: memory: a cluster's CTAs must meet before they allocate, got it before the "
        "first meeting; move it after",
    ),
    "threads that use tensor memory and do not meet": (
        PAIRS,
        replace(
            "apart = 16 : i64, barrier = 4 : i64, threads = 160",
            "apart = 0 : i64, barrier = 0 : i64, threads = 0",
        ),
        "sm.tmem_base: memory: those who use it must meet after the allocation, by sm.cta_barrier "
        "or the barrier of sm.tmem_base, got sm.tmem_base; add it",
    ),
    "a warp that uses tensor memory and does not wait for it": (
        ROLES,
        change("sm.tmem_base", "apart", 48),
        "sm.tmem_base: memory: apart must be 16, got 48; take that",
    ),
    "fewer threads that wait for tensor memory": (
        ROLES,
        change("sm.tmem_base", "threads", 128),
        "sm.tmem_base: memory: threads must be 160, got 128; take that",
    ),
    "tensor memory that is taken elsewhere": (
        PAIRS,
        move_lines('"sm.first_warp"', "})", '"sm.warps"'),
        "sm.fence: memory: must be allocated before the first meeting or right after it, got "
        "sm.fence; put its sm.first_warp there",
    ),
    "threads that do not meet at the end": (
        ROLES,
        drop('"sm.cta_barrier"', -1),
        "sm.warps: meeting: all threads must meet by sm.cta_barrier at the end, got sm.warps; add "
        "it",
    ),
    "CTAs of a cluster that do not meet": (
        PAIRS,
        replace('sm.cluster_barrier"() {releases = false}', 'sm.cta_barrier"()', -1),
        "sm.cta_barrier: meeting: all threads must meet by sm.cluster_barrier at the end, got "
        "sm.cta_barrier; add it",
    ),
    "CTAs of a cluster that meet and do not release what they wrote": (
        PAIRS,
        insert('"sm.converge"', '"sm.cta_barrier"() : () -> ()'),
        "sm.cluster_barrier: meeting: must release what is written before the program, got a "
        "relaxed one; let it release",
    ),
    "CTAs of a cluster that meet at the end and do not release what they did": (
        PARTS,
        replace("releases = true", "releases = false", -1),
        "sm.cluster_barrier: meeting: must release what is written at the end, got a relaxed "
        "one; let it release",
    ),
    "a cluster whose CTAs have no place": (
        PAIRS,
        drop('"sm.cta_place"'),
        "tile.kernel: a kernel with clusters must say by sm.cta_place which CTA it runs in, got "
        "none; run pipes-to-barriers",
    ),
    "a place that one lane knows": (
        PAIRS,
        move('"sm.cta_place"', '"sm.barrier_init"'),
        "sm.cta_place: must stand in a kernel, got it in sm.run",
    ),
    "a meeting without a fence": (
        ROLES,
        drop('"tcgen05_before"', -1),
        "sm.cta_barrier: meeting: the fences tcgen05_before and tcgen05_after must stand around "
        "it, got none and tcgen05_after; add them",
    ),
    "tensor memory that nobody allocates": (
        ROLES,
        drop('"sm.tmem_alloc"'),
        f"sm.tensor_memory: memory: {ONCE} sm.tmem_alloc, got 0; have one each",
    ),
    "tensor memory that nobody gives back": (
        ROLES,
        drop_lines('"sm.first_warp"', "})", -1),
        f"sm.tensor_memory: memory: {ONCE} sm.tmem_dealloc, got 0; have one each",
    ),
    "fewer columns that are given back": (
        ROLES,
        change("sm.tmem_dealloc", "columns", 32),
        "sm.tmem_dealloc: memory: columns must be 128, got 32; take that",
    ),
    "tensor memory that all warps give up": (
        ROLES,
        move('"sm.tmem_relinquish"', '"sm.converge"'),
        "sm.tmem_relinquish: memory: must stand in a sm.first_warp right after the first meeting, "
        "or before it, got it elsewhere; move it",
    ),
    "an address of tensor memory that goes elsewhere": (
        ROLES,
        elsewhere,
        "sm.tmem_alloc: memory: the address must go to byte 65584, got 8; write it there",
    ),
    "a count that nobody reaches": (
        ROLES,
        change("sm.barriers", "arrivals", 5, 3),
        arrivals("accumulator.empty", 4, 5),
    ),
    "a release that is missing": (
        ROLES,
        drop_lines('"sm.run"', 'by = "warp"', 1),
        arrivals("accumulator.empty", 0, 4),
    ),
    "a commit that is missing": (
        ROLES,
        drop('"sm.commit"(', -1),
        arrivals("accumulator.full", 0, 1),
    ),
    "an arrival twice": (ROLES, again('"sm.arrive"('), arrivals("accumulator.empty", 8, 4)),
    "arrivals of one warp": (
        ROLES,
        replace('by = "warp"', 'by = "lane"'),
        arrivals("accumulator.empty", 1, 4),
    ),
    "fewer bytes expected": (
        ROLES,
        change(EXPECT, "bytes", 16384),
        bytes_of(EXPECT, "operands.full", 32768, 16384),
    ),
    "bytes of one CTA of a pair": (
        PAIRS,
        change(EXPECT, "bytes", 20480),
        bytes_of(EXPECT, "operands.full", 40960, 20480),
    ),
    "a load that is missing": (
        ROLES,
        drop('"tile.load_boxes"', 1),
        bytes_of(EXPECT, "operands.full", 16384, 32768),
    ),
    "a mask of fewer CTAs": (
        PAIRS,
        replace('along = ["m", "n"]', 'along = ["m"]'),
        arrivals("operands.empty", 2, 3),
    ),
    "a load for all in line": (
        PAIRS,
        replace('whose = "peers"', 'whose = "cta"'),
        "tile.multicast_boxes: source: the mask must be of the peers along 'n', got another",
    ),
    "the parity of a full slot for an empty one": (
        ROLES,
        replace("arith.xori", "arith.ori"),
        "sm.wait_barrier: source: 'operands.empty' is waited for by the phase before (xor 1) of "
        f"the reading that the index is from, got another parity; {TAKE}",
    ),
    "the index for the parity": (
        ROLES,
        replace("%21#1)", "%21#0)"),
        "sm.wait_barrier: source: 'accumulator.full' is waited for by the phase of the reading "
        f"that the index is from, got another parity; {TAKE}",
    ),
    "a position in another ring": (
        ROLES,
        replace(f"{READ}8", f"{READ}14"),
        "sm.wait_barrier: source: the index must be that of a position in 2 slots, got a parity or "
        "a position in 1; read another position",
    ),
    "a position inside another op": (
        ROLES,
        insert(
            '"sm.team"',
            '"sm.position"() {label = "x", stages = 2 : i64} : () -> !sm.place_in_ring',
            1,
        ),
        "sm.position: place: must stand in the kernel itself, got it inside another op",
    ),
    "a position that stays": (
        ROLES,
        drop('"sm.advance_position"(%8)'),
        "tile.load_boxes: visit: the position must go on before the iteration ends, got no "
        "sm.advance_position after it; add one",
    ),
    "a second wait": (
        ROLES,
        again('"sm.wait_barrier"'),
        "sm.wait_barrier: visit: at a slot an agent waits once for 'accumulator.full', got a "
        "second wait before the position goes on; advance it between the two",
    ),
    "a slot that nobody has waited for": (
        ROLES,
        drop('"sm.wait_barrier"'),
        "sm.slot: visit: a slot is taken once 'accumulator.full' or 'accumulator.empty' has been "
        "waited for at its index, got no such wait before; add it",
    ),
    "nobody who waits for sums in no ring": (
        SINGLE,
        drop('"sm.wait_barrier"', -1),
        "sm.barriers: visit: somebody must wait for 'mma.done', got none; wait for it",
    ),
    "an answer that one warp of four hands back": (
        CLAIMS,
        replace('by = "warp"', 'by = "lane"', 1),
        arrivals("claims.empty", 4, 7),
    ),
    "fewer bytes than an answer has": (
        CLAIMS,
        change(EXPECT, "bytes", 8, -1),
        bytes_of(EXPECT, "claims.full", 16, 8),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_barriers_that_do_not_fit_together_are_refused(name):
    passes, edit, message = ROWS[name]
    found, line = refusal(f"{passes},pipes-to-barriers", edit)
    assert found == message
    assert message.partition(":")[0] in line


def test_an_agent_must_arrive_at_each_slot_as_at_the_one_before():
    edit = replace('by = "warp"', 'by = "lane"')
    found, _ = refusal(f"{PERMUTES},pipes-to-barriers", edit, "sm_90a")
    assert found == (
        "sm.advance_position: arrivals: 'operands.empty' must get as many at each slot, got 1 at "
        "one and 4 here; arrive alike"
    )

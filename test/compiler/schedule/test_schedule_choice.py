"""The schedule choice: the best legal candidate by its own estimate, with true rejections."""

import importlib
import random
import sys
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import PASSES
from tilewright.compiler.schedule.chips.chip_figures import figure_table
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import RULES, broken_rules
from tilewright.compiler.schedule.search.candidates import candidates
from tilewright.compiler.schedule.search.choice import choose_schedule, explain_schedule, target_for
from tilewright.compiler.schedule.waves import wave_shape
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import GPUS, TARGETS, find_target

TARGET = find_target("sm_100a")
HOPPER = find_target("sm_90a")
pytestmark = pytest.mark.usefixtures("no_tables")


# m, n, k → tile, cluster, pair, scheduler: what the figures of today choose.
TABLE = [
    ((1, 1, 1), (64, 16, 16), (1, 1), False, "none"),
    ((77, 33, 51), (64, 16, 64), (1, 1), False, "none"),
    ((8192, 16, 8192), (64, 16, 64), (1, 1), False, "none"),
    ((1000, 1112, 1096), (64, 128, 64), (2, 1), True, "none"),
    ((1024, 1024, 1024), (64, 128, 64), (2, 1), True, "none"),
    ((4096, 4096, 4096), (128, 128, 64), (2, 1), True, "static"),
    ((8192, 8192, 8192), (128, 256, 64), (2, 1), True, "static"),
]

SCHEDULES = [
    Schedule((64, 32, 64), 3),
    Schedule((128, 128, 64), 6, (2, 1), True, "static"),
    Schedule((128, 256, 64), 4, (2, 2), True, "clc", "grouped", staging=(32, 2)),
    Schedule((128, 64, 128), 2, (1, 2), staging=(64, 2)),
]

sizes = st.one_of(st.integers(1, 300), st.sampled_from([512, 1000, 2048, 4096, 16384]))
specs = st.builds(
    MatmulSpec,
    m=sizes,
    n=sizes,
    k=sizes,
    a_dtype=st.just("f16"),
    b_dtype=st.just("f16"),
    c_dtype=st.sampled_from(["f16", "f32"]),
    a_major=st.sampled_from("km"),
    b_major=st.sampled_from("kn"),
)


@pytest.mark.parametrize(("shape", "tile", "cluster", "pair", "scheduler"), TABLE)
def test_the_choice_for_a_table_of_shapes(shape, tile, cluster, pair, scheduler):
    chosen = choose_schedule(MatmulSpec(*shape), TARGET)
    found = (chosen.tile, chosen.cluster, chosen.pair, chosen.scheduler)
    assert found == (tile, cluster, pair, scheduler)


@settings(max_examples=6, deadline=None)
@given(specs)
def test_the_choice_keeps_limits_counted_here(spec):
    chosen = choose_schedule(spec, TARGET)
    m, n, k = chosen.tile
    b_rows = n // 2 if chosen.pair else n
    staged = m * chosen.staging[0] * (4 if spec.c_dtype == "f32" else 2) if chosen.staging else 0
    operands = chosen.stages * (m + b_rows) * k * 2
    assert operands + staged * (chosen.staging or (0, 0))[1] <= 232_448
    assert n * (1 if chosen.scheduler == "none" else 2) <= 512
    assert chosen.cluster[0] * chosen.cluster[1] <= 8
    assert not chosen.pair or (chosen.cluster[0] % 2 == 0 and n % 32 == 0)


@given(specs, st.sampled_from("mnk"), st.sampled_from(SCHEDULES))
def test_a_longer_axis_never_makes_one_schedule_faster(spec, axis, schedule):
    longer = replace(spec, **{axis: 8 * getattr(spec, axis)})
    aligned = replace(spec, m=16 * spec.m, n=16 * spec.n, k=16 * spec.k)  # to sectors
    longest = replace(aligned, **{axis: 8 * getattr(aligned, axis)})
    before, after = (
        estimate(Problem.of(each, TARGET), schedule, TARGET) for each in (aligned, longest)
    )
    assert after.total_us >= before.total_us
    before, after = (Problem.of(each, TARGET).ctas(schedule) for each in (spec, longer))
    assert after >= before


@given(specs, st.integers(2, 7))
def test_more_stages_and_wider_multicast_never_lengthen_a_main_loop(spec, stages):
    problem = Problem.of(spec, TARGET)

    def cycles(schedule):
        found = estimate(problem, schedule, TARGET)
        return found.main_loop_us * found.clock

    shallow = Schedule((128, 128, 64), stages=stages)
    assert cycles(replace(shallow, stages=stages + 1)) <= 1.000001 * cycles(shallow)
    assert cycles(replace(shallow, cluster=(2, 2))) <= 1.000001 * cycles(shallow)


def test_the_estimate_of_one_tile_is_the_sum_worked_by_hand():
    """Ten K tiles of 48 KiB, of which each is 4 MMAs of 128 cycles; all in cycles at 1.965 GHz."""
    spec = MatmulSpec(128, 256, 640)
    found = estimate(Problem.of(spec, TARGET), Schedule((128, 256, 64), stages=4), TARGET)
    mma, load = 4 * 128 + 12, (128 + 256) * 64 * 2 / 90
    chain = 800 + load + mma + 136
    steps = 6 * max(load, (chain + 490) / 4) + 3 * load + mma
    epilogue = 128 * 256 / 8 + 128 * 256 * 2 / 102
    cycles = 1200 + 730 + 800 + load + steps + 136 + epilogue
    dram_us = ((128 + 256) * 640 * 2 + 128 * 256 * 2) / 7.2e6
    loops_us = 10 * load / 1965
    assert loops_us > dram_us
    assert found.total_us == pytest.approx(2 + cycles / 1965 + 0.23 * dram_us)
    assert found.bound == "latency"  # four slots are less than a load under way takes


def test_what_starts_behind_it_is_hidden_by_ctas_that_share_a_multiprocessor():
    """Eight waves of short sums: one CTA at a time, or two, whose rings are half as deep."""
    problem, alone = Problem.of(MatmulSpec(8192, 2368, 512), TARGET), Schedule((128, 128, 64), 6)
    one, two = (estimate(problem, each, TARGET) for each in (alone, replace(alone, stages=3)))
    assert (one.residents, two.residents) == (1, 2)
    assert two.main_loop_us > one.main_loop_us and two.total_us < one.total_us


def test_the_clock_falls_with_the_share_of_cycles_that_multiply():
    pairs = Schedule((128, 256, 64), 6, (2, 1), True, "static")
    clocks = [
        estimate(Problem.of(MatmulSpec(*shape), TARGET), pairs, TARGET).clock
        for shape in ((512, 512, 512), (4096, 4096, 1024), (8192, 8192, 8192))
    ]
    assert clocks[0] == 1.965 and clocks == sorted(clocks, reverse=True)
    assert 1.45 < clocks[-1] < 1.6


def test_a_problem_that_streams_is_bound_by_dram():
    spec = MatmulSpec(16, 65536, 4096, c_dtype="f32")
    choice = explain_schedule(spec, TARGET)
    moved = 2 * 4096 * (65536 + 16) + 4 * 16 * 65536
    assert choice.estimate.bound == "DRAM"
    assert choice.estimate.total_us >= moved / 7.2e6


# One schedule that breaks each rule, and the numbers its reason must name.
BROKEN = {
    "mma-shape": (Schedule((96, 128, 64)), ["64", "96"]),
    "pair-shape": (Schedule((128, 128, 64), cluster=(1, 2), pair=True), ["even", "got 1"]),
    "reduced-groups": (Schedule((64, 48, 64)), ["48 columns", "multiple of 64"]),
    "wasted-tile": (Schedule((128, 128, 64)), ["M = 60", "64", "128"]),
    "cluster-size": (Schedule((64, 16, 64), cluster=(8, 4)), ["16", "32"]),
    "idle-cta": (Schedule((64, 16, 64), cluster=(2, 1)), ["2 along M", "1 tiles"]),
    "operand-layout": (Schedule((64, 4, 64)), ["multiple of 8", "4"]),
    "exchanged-rows": (Schedule((64, 16, 64), swap=True), ["16 rows of C", "up to 60"]),
    "narrow-rows": (Schedule((64, 80, 64)), ["160 contiguous bytes of b", "rows of 32"]),
    "tma-box": (Schedule((512, 16, 64)), ["256", "512"]),
    "tma-row-pitch": (Schedule((64, 16, 64), cluster=(1, 2)), ["998", "16"]),
    "multicast-slice": (Schedule((64, 16, 64), cluster=(3, 1)), ["B: 16 rows", "3 parts"]),
    "staged-store": (Schedule((64, 48, 64), staging=(32, 2)), ["48", "32"]),
    "pieces-ahead": (Schedule((64, 16, 64), staging=(16, 2), ahead=2), ["16", "328"]),
    "tensor-memory": (Schedule((256, 256, 64), scheduler="static"), ["1024", "512"]),
    "shared-memory": (Schedule((128, 256, 64), stages=5), ["49152", "246784", "232448"]),
    "one-wave": (Schedule((64, 16, 64), scheduler="static"), ["10", "148"]),
    "group-height": (Schedule((64, 16, 64), order="grouped", group=8), ["8", "1"]),
    "group-order": (Schedule((64, 16, 64), scheduler="static", order="n"), ["along n", "group"]),
    "ring-depth": (Schedule((64, 16, 64), stages=9), ["9", "8"]),
    "level-tiles": (
        Schedule((64, 16, 64), level=True),
        ["equal height", "groups of plain products"],
    ),
    "wide-tiles": (Schedule((128, 192, 64), ping_pong=True), ["wide tiles", "wgmma"]),
    "grid-extent": (Schedule((64, 16, 64)), ["65535", "y"]),
    "added-scales": (Schedule((128, 192, 128)), ["192 columns", "176"]),
}
# Those that no schedule for the first target can break.
BROKEN_ON_HOPPER = {
    "accumulator-registers": (Schedule((256, 256, 64)), ["256x256", "128"]),
    "launch-control": (Schedule((128, 128, 64), scheduler="clc"), ["sm_90a"]),
    "alternating-consumers": (
        Schedule((128, 256, 64), scheduler="static", ping_pong=True),
        ["128x256", "2"],
    ),
    "split-parts": (Schedule((64, 32, 64), split_k=4), ["2 K tiles", "8"]),
    "resident-clusters": (
        Schedule((64, 16, 64), cluster=(2, 2), scheduler="static"),
        ["33 clusters of 4", "30"],
    ),
    "grid-parts": (Schedule((64, 32, 64), split_grid=4), ["2 K tiles", "8"]),
    "split-alone": (Schedule((64, 64, 64), scheduler="static", split_k=2), ["static"]),
    "group-columns": (Schedule((64, 128, 64)), ["64x128", "160 columns"]),
    "group-ring": (Schedule((64, 256, 64), 5, ping_pong=True), ["5 stages", "than 4"]),
    "level-tiles": (Schedule((256, 128, 64), 4, swap=True, level=True), ["256", "60 and 512"]),
    "added-columns": (Schedule((256, 80, 128)), ["80 columns", "96"]),
    "added-alone": (Schedule((64, 128, 128)), ["one warpgroup of 64x128", "two do both"]),
    "added-cluster": (Schedule((128, 128, 128), cluster=(2, 1)), ["clusters on an H200"]),
    "added-copies": (Schedule((128, 192, 128)), ["192 registers", "160"]),
    "added-registers": (Schedule((256, 144, 128)), ["216 registers", "192"]),
    "added-ring": (Schedule((256, 96, 128), stages=3), ["3 stages", "4"]),
    "added-staging": (
        Schedule((256, 128, 128), staging=(32, 2)),
        ["224 registers", "32 columns of 2 bytes", "16 of 2 fit"],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_names_its_numbers(name):
    schedule, words = (BROKEN | BROKEN_ON_HOPPER)[name]
    target = HOPPER if name in BROKEN_ON_HOPPER else TARGET
    spec = MatmulSpec(60, 160, 499 if name == "tma-row-pitch" else 512)
    if name == "narrow-rows":
        spec = replace(spec, b_major="n")
    if name == "grid-extent":
        spec, words = replace(spec, n=16 * 70_000), ["65535", "70000"]
    problem = Problem.of(spec, target)
    if name == "exchanged-rows":
        problem = replace(problem, dynamic_m=True, most_m=60, swapped=True)
    if name.startswith("added"):
        problem = replace(problem, adds_products=True)
    if name == "added-copies":
        problem = replace(problem, row_scales=True, m=62)
    if name in ("added-staging", "added-alone"):
        problem = replace(problem, column_scales=True, m=4096, n=4096)
    if name == "added-scales":
        problem = replace(problem, column_scales=True)
        target = target.using(target.added_mma.name)
    if name == "reduced-groups":
        problem = replace(problem, neighbours=32)
    if name in ("group-order", "group-columns", "group-ring", "level-tiles"):
        problem = replace(problem, grouped="m")
    if name == "pieces-ahead":
        problem = replace(problem, n=164, beside=(2,))
    reason = RULES[name](problem, schedule, target)
    assert reason is not None
    assert all(word in reason for word in words), reason


def test_three_dimensional_boxes_need_rows_of_whole_chunks():
    problem = Problem.of(MatmulSpec(256, 256, 200), TARGET)
    reason = RULES["tma-box"](problem, Schedule((128, 128, 64), box="3d"), TARGET)
    assert reason == "3d boxes need rows of whole 128-byte chunks, a has 400 bytes"


def test_a_grid_that_cannot_be_launched_is_refused_with_its_rule():
    with pytest.raises(CompileError, match=r"schedule: one of .* a grid can have 65535 CTAs"):
        choose_schedule(MatmulSpec(2**20, 2**26, 8), TARGET)


def test_a_curve_has_as_many_tiles_as_its_table():
    schedule = Schedule((128, 128, 64), scheduler="static", order="hilbert")
    fits = Problem.of(MatmulSpec(128 * 256, 128 * 256, 64), TARGET)
    assert RULES["grid-extent"](fits, schedule, TARGET) is None
    reason = RULES["grid-extent"](replace(fits, m=128 * 256 + 1), schedule, TARGET)
    assert reason == "the table of order=hilbert has at most 65536 tiles, got 257x256"


@pytest.mark.parametrize(
    ("grid", "shape"), [((64, 64), (15, 15)), ((64, 4), (56, 4)), ((3, 90), (3, 74))]
)
def test_a_wave_on_a_curve_is_about_a_square(grid, shape):
    problem = Problem.of(MatmulSpec(128 * grid[0], 128 * grid[1], 64), TARGET)
    schedule = Schedule((128, 128, 64), scheduler="static", order="hilbert")
    assert wave_shape(problem, schedule, TARGET) == shape
    assert "persistence{order=hilbert}" in schedule.pipeline()
    assert "static on a Hilbert curve" in schedule.label()


def test_the_pipeline_text_names_every_pass_that_the_schedule_needs():
    schedule = Schedule(
        (128, 256, 64), 4, (2, 1), True, "clc", "grouped", staging=(32, 2), box="3d"
    )
    assert schedule.pipeline() == (
        "tiling{tile=128x256x64},tma-insertion{box=3d},swizzle-selection,"
        "epilogue-staging{columns=32 buffers=2},clustering{shape=2x1 pair=true},"
        "pipelining{stages=4},warp-specialization,"
        "persistence{scheduler=clc order=grouped group=8}"
    )


@pytest.mark.parametrize("shape", [row[0] for row in TABLE])
def test_the_passes_take_the_choice(shape):
    spec = MatmulSpec(*shape)
    compile_matmul(spec, pipeline=choose_schedule(spec, TARGET).pipeline(), until="mlir")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", range(4))
def test_the_passes_take_whatever_keeps_the_rules(seed):
    """A sample of what a chip of four multiprocessors would choose from, so that tiles remain."""
    source, small = random.Random(seed), replace(TARGET, multiprocessors=4)
    majors = {"a_major": source.choice("km"), "b_major": source.choice("kn")}
    spec = MatmulSpec(520, 264, source.choice([51, 200, 328]), **majors)
    problem = Problem.of(spec, small)
    broken = broken_rules(problem, small)
    legal = [c for c in candidates(problem, small) if broken(c) is None]
    schedulers = {option.name for option in fields(PASSES["persistence"])} & {"scheduler"}
    legal = [c for c in legal if schedulers or c.scheduler != "clc"]
    for candidate in source.sample(legal, 2):
        compile_matmul(spec, pipeline=candidate.pipeline(), until="mlir")


@pytest.mark.parametrize("chip", [*TARGETS, *GPUS])
def test_every_figure_has_a_unit_and_a_source(chip):
    figures = figure_table(find_target(chip)).values()
    assert all(figure.unit and figure.source for figure in figures)
    assert chip in ("sm_90a", "h100", "h200") or any(figure.assumed for figure in figures)


def test_most_figures_of_a_b200_are_published():
    figures = figure_table(TARGETS["sm_100a"])
    assumed = {name for name, figure in figures.items() if figure.assumed}
    assert assumed == {
        "copy_rate", "copy_step", "shift_rate", "epilogue_rate", "beside_rate", "tmem_rate",
        "idle_power", "parts_write", "parts_read", "parts_meet", "dram_share", "written",
    }  # fmt: skip
    assert len(figures) >= 4 * len(assumed)


def test_the_choice_needs_no_mlir(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tilewright.compiler.schedule")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tilewright.dialects.mlir", None)
    module = importlib.import_module("tilewright.compiler.schedule.search.choice")
    assert module.choose_schedule(MatmulSpec(64, 64, 64), TARGET).tile[0] == 64


@pytest.mark.parametrize(
    ("sizes", "forms"),
    [((9998, 8192, 2048), ("1x128", "128x128")), ((2304, 9072, 1570), ("128x128", "1x128"))],
)
def test_threads_that_copy_leave_those_who_add_their_registers(sizes, forms):
    """Of scales, and of operands; ptxas refused what was chosen without the rule."""
    spec = MatmulSpec(*sizes, "e4m3", "e4m3", a_scales=forms[0], b_scales=forms[1])
    assert compile_matmul(spec, target="sm_90a", until="cubin").assembled is not None


@pytest.mark.parametrize("forms", [("1x128", "128x128"), ("1x128", "1x128"), ("", "")])
def test_few_tiles_of_a_long_k_have_a_schedule_where_threads_add_products(forms):
    """Their K is in no parts on a chip whose figures do not know what these cost."""
    a, b = forms
    more = {"a_scales": a, "b_scales": b} if a else {"sums": "two-level"}
    spec = MatmulSpec(16, 1024, 7168, "e4m3", "e4m3", **more)
    target = target_for(spec, "sm_100a")
    chosen = choose_schedule(spec, target)
    assert chosen == explain_schedule(spec, target).schedule
    assert chosen.split_k == chosen.split_grid == 1

"""What the schedule choice knows of Hopper: clusters, split K, waves, rows that start anywhere."""

import random
from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.compiler.schedule.estimates.estimate import estimate, start_cycles
from tilewright.compiler.schedule.estimates.l2_costs import answered_shares, asked_rows, l2_cycles
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import RULES, broken_rule, broken_rules
from tilewright.compiler.schedule.search.choice import candidates, choose_schedule
from tilewright.compiler.schedule.waves import band_of, ctas_at_fullest
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

TARGET = find_target("sm_100a")
HOPPER = find_target("sm_90a")
pytestmark = pytest.mark.usefixtures("no_tables")

# m, n, k → tile, scheduler: what the figures of an H200 choose.
HOPPER_TABLE = [
    ((1, 1, 1), (64, 16, 16), "none"),
    ((64, 4096, 4096), (64, 32, 128), "none"),
    ((1024, 1024, 1024), (64, 128, 64), "none"),
    ((1536, 1536, 1536), (192, 96, 64), "none"),
    ((2048, 2048, 2048), (128, 256, 64), "none"),
    ((4096, 4096, 4096), (128, 256, 64), "static"),
    ((5120, 5120, 5120), (128, 224, 64), "static"),
]


@pytest.mark.parametrize(("shape", "tile", "scheduler"), HOPPER_TABLE)
def test_the_choice_for_a_table_of_shapes_on_hopper(shape, tile, scheduler):
    chosen = choose_schedule(MatmulSpec(*shape), HOPPER)
    assert (chosen.tile, chosen.scheduler, chosen.cluster) == (tile, scheduler, (1, 1))


# tile, rows of tiles: bands whose waves of 132 tiles touch fewer rows of A and B.
BANDS = [((128, 256), 16), ((128, 192), 16), ((128, 128), 8), ((256, 128), 8), ((256, 256), 8)]


@pytest.mark.parametrize(("tile", "rows"), BANDS)
def test_bands_are_as_tall_as_leaves_a_wave_fewer_rows_of_operands(tile, rows):
    problem = Problem.of(MatmulSpec(8192, 8192, 4096), HOPPER)
    one = Schedule((*tile, 64), scheduler="static", order="grouped")
    assert band_of(problem, one, HOPPER) == rows
    assert band_of(problem, one.but(cluster=(2, 1)), HOPPER) == 8, "not measured"
    assert band_of(problem, one, TARGET) == 8, "not measured"
    assert band_of(replace(problem, beside=(2,)), one, HOPPER) == 8, "slower in tall ones"


@pytest.mark.parametrize(
    ("shape", "tile"), [((4096, 4096, 4096), (128, 256, 64)), ((8192, 8192, 2048), (128, 192, 64))]
)
def test_large_products_take_tall_bands(shape, tile):
    chosen = choose_schedule(MatmulSpec(*shape), HOPPER)
    assert (chosen.tile, chosen.order, chosen.group) == (tile, "grouped", 16)


@pytest.mark.parametrize(("n", "k"), [(4096, 14336), (10240, 8192)])
@pytest.mark.parametrize("gpu", ["sm_90a", "h100"])
def test_a_token_is_multiplied_as_it_lies(gpu, n, k):
    """Exchanged, CTAs would have 64 rows of the weights or more, and half as many would ask."""
    target = find_target(gpu)
    chosen = choose_schedule(MatmulSpec(1, n, k), target)
    assert not chosen.swap and chosen.tile[1] < 128


def test_few_exchanged_columns_ask_dram_for_more():
    """Of operands that L2 holds, whether CTAs share K or not."""
    problem = Problem.of(MatmulSpec(1, 4096, 4096), HOPPER)
    few = Schedule((64, 16, 128), 8, swap=True)
    bytes_of = [
        estimate(problem, few.but(tile=(64, columns, 128), split_k=parts), HOPPER).dram_us
        for columns, parts in ((16, 1), (24, 1), (16, 2), (24, 2))
    ]
    assert bytes_of[0] == pytest.approx(1.06 * bytes_of[1])
    assert bytes_of[2] == pytest.approx(1.06 * bytes_of[3])


# m, n, k → tile, parts of K: few tiles with a long K have several, many or short ones not.
SPLIT_TABLE = [
    ((1024, 256, 8192), (64, 128, 64), 3),
    ((32, 1024, 8192), (64, 32, 128), 4),
    ((256, 256, 16384), (64, 128, 64), 8),
    ((256, 256, 512), (64, 16, 128), 1),
    ((4096, 4096, 4096), (128, 256, 64), 1),
]


@pytest.mark.parametrize(("shape", "tile", "parts"), SPLIT_TABLE)
def test_long_sums_of_few_tiles_are_split_on_hopper(shape, tile, parts):
    chosen = choose_schedule(MatmulSpec(*shape), HOPPER)
    assert (chosen.tile, chosen.split_k * chosen.split_grid) == (tile, parts)
    assert f"split-k{{parts={parts}" in chosen.pipeline() or parts == 1


# CTAs at work, CTAs of a cluster → those of the fullest GPC, of 18, 18, 16, 16, 16, 16, 16 and 8.
FULLEST = [
    ((132, 1), 18),
    ((120, 1), 16),
    ((64, 1), 8),
    ((120, 8), 16),
    ((72, 8), 16),
    ((64, 8), 8),
    ((72, 6), 12),
    ((102, 6), 18),
]


@pytest.mark.parametrize(("ctas", "most"), FULLEST)
def test_the_fullest_gpc_has_whole_clusters(ctas, most):
    assert ctas_at_fullest(*ctas, figures(HOPPER)) == 8 * most


def test_clusters_that_share_both_operands_start_later_and_step_no_slower():
    problem, tile = Problem.of(MatmulSpec(512, 512, 4096), HOPPER), Schedule((64, 64, 64), 8)
    one, both = tile.but(cluster=(1, 4)), tile.but(cluster=(2, 2))
    later = start_cycles(both, HOPPER) - start_cycles(one, HOPPER)
    assert later == figures(HOPPER).shared_twice > 0
    assert l2_cycles(problem, both, HOPPER) <= l2_cycles(problem, one, HOPPER)


def test_parts_wait_for_the_gpc_with_two_clusters():
    """Of 9 clusters of 8 CTAs two run on one GPC; of 8 none has company."""
    tile = Schedule((64, 112, 64), 9, split_k=8)
    nine, eight = (
        l2_cycles(Problem.of(MatmulSpec(64 * clusters, 112, 7840), HOPPER), tile, HOPPER)
        for clusters in (9, 8)
    )
    assert nine > 1.5 * eight


def test_parts_of_exchanged_operands_are_chosen_where_an_h100_runs_them_faster():
    """64x16 tiles with K whole take 19.1 us, the best of 20 others, most of them split, 12.8."""
    chosen = choose_schedule(MatmulSpec(139, 648, 8960), find_target("h100"))
    assert chosen.swap and chosen.split_k > 1


# m, n, k: small tiles of CTAs alone, or 128x128 in turns, took an H100 1.3 to 1.9 times as long as
# the fastest.
ASKED_OFTEN = [(694, 640, 15744), (931, 328, 5088), (1102, 328, 6336), (1717, 6744, 1728)]


@pytest.mark.parametrize("shape", ASKED_OFTEN)
def test_what_many_ctas_ask_l2_for_is_multicast_or_divided_on_an_h100(shape):
    """L2 answers less than half of what CTAs alone ask for together."""
    chosen = choose_schedule(MatmulSpec(*shape), find_target("h100"))
    shared = chosen.cluster_size >= 4 or chosen.split_k * chosen.split_grid > 1
    assert shared or sum(chosen.tile[:2]) > 256 + 64


def test_l2_is_asked_for_more_by_clusters_of_two_than_by_ctas_alone():
    """A cluster of two halves the rows of one operand; alone, L2 answers many of both together."""
    problem = Problem.of(MatmulSpec(640, 800, 4096), HOPPER)
    alone = Schedule((64, 80, 64), 8)
    pair, several = alone.but(cluster=(1, 2)), alone.but(cluster=(4, 2))
    asked = [asked_rows(problem, each, HOPPER) for each in (alone, pair, several)]
    apart = 1 - figures(HOPPER).answered_together
    assert asked == pytest.approx([apart * (64 + 80), 32 + 80, 32 + 20])


@pytest.mark.parametrize(
    ("order", "nearest"), [("m", (8, 1)), ("n", (1, 16)), ("grouped", (8, 1)), ("hilbert", (2, 2))]
)
def test_an_h100_answers_less_together_the_more_ctas_lie_between(order, nearest):
    """512x4096x14336 by 8x16 tiles of 64x256: 84 us along M, where those that start one after the
    other share 256 rows of B, and 143 along N, where they share 64 of A."""
    chip = figures(find_target("h100"))
    shares = answered_shares((8, 16), Schedule((64, 256, 64), 5, order=order), chip)
    wanted = [chip.answered_together / each**chip.answered_apart for each in nearest]
    assert shares == pytest.approx(wanted)


@pytest.mark.parametrize(("tile", "order"), [((64, 256), "m"), ((256, 64), "n")])
def test_ctas_that_start_one_after_the_other_share_the_more_rows(tile, order):
    """The estimate takes the order in which L2 is asked for less."""
    target = find_target("h100")
    problem = Problem.of(MatmulSpec(2048, 2048, 8192), target)
    schedules = [Schedule((*tile, 64), 4, order=each) for each in "mn"]
    times = {each.order: estimate(problem, each, target).total_us for each in schedules}
    assert min(times, key=lambda each: times[each]) == order


def test_rows_of_parts_that_others_ask_for_too_arrive_sooner():
    """16 tiles of four parts: in a row of them B is asked for once, in a square four times."""
    schedule = Schedule((64, 64, 64), 8, split_k=4)
    apart, shared = (
        l2_cycles(Problem.of(MatmulSpec(m, n, 4096), HOPPER), schedule, HOPPER)
        for m, n in ((64, 64 * 16), (64 * 4, 64 * 4))
    )
    assert shared < 0.8 * apart


def microseconds(shape, schedule):
    problem = Problem.of(MatmulSpec(*shape), HOPPER)
    assert broken_rule(problem, schedule, HOPPER) is None
    return estimate(problem, schedule, HOPPER).total_us


def test_rows_that_start_within_a_sector_of_l2_cost_more_and_clusters_halve_them():
    alone = Schedule((128, 192, 64), 4, staging=(64, 2))
    shared = replace(alone, cluster=(2, 1))
    aligned, unaligned = (1000, 3000, 2048), (1000, 3000, 2040)
    assert microseconds(unaligned, alone) > 1.2 * microseconds(aligned, alone)
    assert microseconds(unaligned, shared) < microseconds(unaligned, alone)
    assert microseconds(aligned, shared) > microseconds(aligned, alone)


SIX, TEN = (684, 1512, 5904), (510, 2112, 3888)
ALONE = Schedule((64, 128, 64), 8, staging=(64, 2))
# What an H200 ran faster where rows start inside lines of L2, and what slower.
INSIDE_LINES = [
    (SIX, Schedule((128, 88, 64), 7, (1, 4), staging=(88, 1), order="n", swap=True), ALONE),
    (SIX, Schedule((128, 96, 64), 7, (1, 4), staging=(32, 2)), ALONE),
    (TEN, Schedule((128, 80, 64), 8, (1, 4), staging=(16, 2)), replace(ALONE, swap=True)),
    (TEN, *(Schedule((64, 160, 64), 7, each, staging=(32, 2)) for each in ((4, 1), (1, 1)))),
]


@pytest.mark.parametrize(("shape", "faster", "slower"), INSIDE_LINES)
def test_where_rows_start_inside_lines_clusters_of_four_gain(shape, faster, slower):
    aligned = (*shape[:2], shape[2] // 128 * 128)
    gains = [microseconds(each, slower) / microseconds(each, faster) for each in (shape, aligned)]
    assert gains[0] > max(1, 1.1 * gains[1])


# Few rows that start inside sectors: an H200 took 8.1, 8.3, 13.3 us alone and 6.8, 7.1, 11.8 in
# clusters.
FEW_INSIDE = [
    ((114, 6768, 408), Schedule((128, 64, 64), 7, staging=(64, 2))),
    ((39, 3624, 1096), Schedule((64, 32, 128), 9, staging=(32, 2))),
    ((47, 10840, 1256), Schedule((64, 96, 128), 5, staging=(32, 2))),
]


@pytest.mark.parametrize(("shape", "alone"), FEW_INSIDE)
def test_few_rows_that_start_inside_sectors_are_multicast(shape, alone):
    shared = replace(alone, cluster=(1, 8))
    assert microseconds(shape, shared) < microseconds(shape, alone)
    aligned = (*shape[:2], -(-shape[2] // 64) * 64)
    assert microseconds(aligned, shared) > microseconds(aligned, alone)


def test_a_larger_operand_beyond_l2_is_asked_for_again_by_clusters_that_share_it():
    problem = Problem.of(MatmulSpec.of_type(152, 5360, 3744, "tf32"), HOPPER)
    several = Schedule((64, 128, 32), 8, (1, 2), staging=(32, 2))  # 44.6 us on an H200
    single = Schedule((192, 48, 32), 7, staging=(16, 1))
    once, again = (estimate(problem, each, HOPPER).dram_us for each in (single, several))
    assert again > 1.3 * once
    assert broken_rule(problem, several, HOPPER) is broken_rule(problem, single, HOPPER) is None


def test_a_row_goes_on_in_a_second_line_as_often_as_its_pitch_says():
    for k, beyond in ((64, 0), (96, 0.5), (16, 0.75), (48, 0.75), (8, 0.875), (1048, 0.875)):
        problem = Problem.of(MatmulSpec(100, 1, k), HOPPER)
        assert problem.lines_beyond == {"a": beyond, "b": 0}  # a single row starts anywhere
    assert Problem.of(MatmulSpec(100, 100, 100), HOPPER).lines_beyond == {}  # threads copy


def test_c_has_one_staging_buffer_where_the_ring_then_has_one_more_stage():
    chosen = choose_schedule(MatmulSpec(1022, 5192, 2104), HOPPER)
    assert (chosen.tile, chosen.stages, chosen.staging) == ((256, 160, 64), 4, (32, 1))
    two = replace(chosen, staging=(32, 2))
    broken = broken_rule(Problem.of(MatmulSpec(1022, 5192, 2104), HOPPER), two, HOPPER)
    assert broken and broken[0] == "shared-memory"


def test_what_clusters_ask_for_at_different_times_is_asked_of_dram_again():
    shape, alone = (4096, 128, 4096), Schedule((64, 64, 128), 6, staging=(64, 2), order="n")
    alone_us, sharing_a, sharing_b = (
        microseconds(shape, replace(alone, cluster=each)) for each in ((1, 1), (1, 2), (2, 1))
    )
    assert alone_us < sharing_a < sharing_b  # an H200: 13.8, 14.3 and 17.1 us
    assert alone_us < microseconds(shape, replace(alone, order="m"))


def test_one_operand_shared_by_eight_is_faster_than_both_by_two_where_rows_start_inside_sectors():
    shape, tile = (777, 1560, 3112), Schedule((128, 112, 64), 7, staging=(16, 2))
    clusters = ((1, 8), (1, 4), (1, 2), (1, 1))
    times = [microseconds(shape, replace(tile, cluster=each)) for each in clusters]
    assert times[0] == min(times) and times[-1] == max(times)
    assert microseconds(shape, replace(tile, cluster=(2, 2))) > times[0]


def test_a_step_is_never_shorter_than_its_barriers_so_few_columns_gain_nothing():
    shape, wide = (128, 4096, 512), Schedule((64, 64, 64), 8, staging=(64, 2))
    narrow = replace(wide, tile=(64, 16, 64), staging=(16, 2), scheduler="static", order="n")
    assert microseconds(shape, narrow) > microseconds(shape, wide)


def test_a_wide_cluster_must_find_room_in_one_wave():
    schedule = Schedule((192, 96, 64), 5, cluster=(1, 8), staging=(32, 2))
    for m, rule in ((1594, "one-wave"), (400, None)):
        problem = Problem.of(MatmulSpec(m, 3688, 5064), HOPPER)
        found = broken_rule(problem, schedule, HOPPER)
        assert (found and found[0]) == rule


def test_rows_outside_cost_more_than_those_inside():
    for schedule in (Schedule((192, 80, 64), 6), Schedule((128, 128, 64), 6)):
        assert microseconds((300, 5000, 1024), schedule) > microseconds((384, 5000, 1024), schedule)


def test_waves_that_ask_dram_for_equal_parts_are_faster():
    along_m = Schedule((128, 208, 64), 5, scheduler="static", order="m", staging=(16, 2))
    along_n = replace(along_m, order="n")
    assert microseconds((640, 10240, 2560), along_m) < microseconds((640, 10240, 2560), along_n)


def test_narrow_copies_by_threads_are_slower():
    schedule = Schedule((128, 128, 64), 4)
    times = [microseconds((512, 512, k), schedule) for k in (4096, 4100, 4098)]
    assert times == sorted(times) and times[2] > 1.33 * times[1] > 2 * times[0]


def test_rows_that_are_shifted_are_slower_than_those_that_are_copied_eight_bytes_at_a_time():
    schedule = Schedule((128, 128, 64), 4)
    shifted, copied = (microseconds((512, 512, k), schedule) for k in (4097, 4100))
    assert 2 * copied > shifted > copied


@pytest.mark.parametrize(
    ("shape", "schedule", "reason"),
    [
        (
            (64, 192, 8192),
            Schedule((64, 64, 64), cluster=(1, 2), split_k=2),
            "where K is split the tiles must be whole clusters, got 1x3 tiles and 1x2",
        ),
        (
            (128, 128, 8192),
            Schedule((64, 64, 64), cluster=(2, 2), split_k=3),
            "3 parts of 4 CTAs are over 8 a cluster",
        ),
        ((4096, 4096, 512), Schedule((64, 64, 64), split_k=2), "4096 tiles are over half of 132"),
        ((640, 512, 8192), Schedule((64, 64, 64), split_k=2), "80 tiles are over half of 132"),
        (
            (512, 512, 8192),
            Schedule((64, 128, 64), split_k=4),
            "32 tiles in 4 parts are over the 120 CTAs that run at once",
        ),
    ],
)
def test_why_a_split_is_not_made(shape, schedule, reason):
    found = RULES["split-parts"](Problem.of(MatmulSpec(*shape), HOPPER), schedule, HOPPER)
    assert found is not None and reason in found


def test_a_split_is_not_made_where_nobody_measured_one():
    reason = RULES["split-parts"](
        Problem.of(MatmulSpec(64, 64, 8192), TARGET), Schedule((64, 64, 64), split_k=2), TARGET
    )
    assert reason == "what a split K costs on sm_100a was not measured"


def test_hopper_has_no_pairs():
    problem = Problem.of(MatmulSpec(256, 256, 64), HOPPER)
    paired = Schedule((128, 128, 64), cluster=(2, 1), pair=True)
    assert RULES["pair-shape"](problem, paired, HOPPER) == "sm_90a has no 2-CTA MMAs"


@pytest.mark.sweep(8)
@pytest.mark.usefixtures("fewer_tiles")
@pytest.mark.parametrize("seed", range(4))
def test_the_passes_take_whatever_keeps_the_rules_of_hopper(seed):
    source, small = random.Random(seed), replace(HOPPER, multiprocessors=4)
    majors = {"a_major": source.choice("km"), "b_major": source.choice("kn")}
    spec = MatmulSpec(520, 264, source.choice([51, 200, 328]), **majors)
    problem = Problem.of(spec, small)
    broken = broken_rules(problem, small)
    legal = [c for c in candidates(problem, small) if broken(c) is None]
    for candidate in source.sample(legal, 2):
        compile_matmul(spec, target="sm_90a", pipeline=candidate.pipeline(), until="mlir")


def test_the_tiles_of_all_matrices_of_a_stack_keep_the_chip_busy():
    """One such product splits K over a cluster; 64 of them have a tile for every multiprocessor."""
    alone, stacked = (
        choose_schedule(MatmulSpec(128, 128, 4096, batch=batch), find_target("sm_90a"))
        for batch in (1, 64)
    )
    assert alone.split_k > 1
    assert stacked.split_k == 1
    assert alone == choose_schedule(MatmulSpec(128, 128, 4096), find_target("sm_90a"))


# m, n, k of gradients of weights → tile, parts of K: what an H200 was fastest with.
GRADIENTS = [
    ((768, 3072, 8192), (192, 96, 64), 1),
    ((3072, 768, 8192), (192, 96, 64), 1),
    ((768, 768, 8192), (128, 160, 64), 4),
    ((768, 768, 2048), (64, 128, 64), 1),
    ((1024, 1024, 16384), (64, 128, 64), 1),
]


@pytest.mark.parametrize(("shape", "tile", "parts"), GRADIENTS)
def test_tiles_of_mn_major_operands_may_have_rows_of_half_a_line(shape, tile, parts):
    chosen = choose_schedule(MatmulSpec(*shape, a_major="m", b_major="n"), HOPPER)
    assert (chosen.tile, chosen.split_k) == (tile, parts)


def test_rows_narrower_than_a_line_cost_as_much_as_a_whole_one():
    """A 64x96 tile has 64 rows of A of 128 bytes and 192 of B of 64 for 64 of K."""
    problem = Problem.of(MatmulSpec(768, 768, 8192, a_major="m", b_major="n"), HOPPER)
    narrow = l2_cycles(problem, Schedule((64, 96, 64)), HOPPER)
    assert narrow == pytest.approx((64 + 192) * float(figures(HOPPER).narrow_row))
    assert narrow > 1.3 * l2_cycles(problem, Schedule((64, 128, 64)), HOPPER)
    k_major = Problem.of(MatmulSpec(768, 768, 8192), HOPPER)
    assert l2_cycles(k_major, Schedule((64, 96, 64)), HOPPER) < narrow / 1.3

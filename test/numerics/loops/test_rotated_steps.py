"""CTAs that begin with different steps along K: each still multiplies all of them, once."""

import itertools
from dataclasses import replace

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.any_size import buckets
from tilewright.compiler.schedule.any_size.sharing import cut_ranges
from tilewright.compiler.schedule.k_rotation import rotation_of
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.runtime.launch.dynamic_kernel import DynamicKernel

TMA = "tma-insertion,swizzle-selection"
ROLES = "pipelining{stages=3},warp-specialization"
ROTATED = {
    "alone": (f"tiling{{tile=64x32x64}},{TMA},{ROLES}", "together=1 by=3"),
    "exchanged": (f"tiling{{tile=64x16x64 swap=true}},{TMA},{ROLES}", "along=m together=1 by=7"),
    "in clusters": (
        f"tiling{{tile=64x32x64}},{TMA},clustering{{shape=1x2 pair=false}},{ROLES}",
        "together=2 by=2",
    ),
    "parts of K": (f"tiling{{tile=64x32x64}},{TMA},split-k{{parts=2}},{ROLES}", "together=2 by=1"),
    "several tiles": (f"tiling{{tile=64x32x64}},{TMA},{ROLES},persistence{{ctas=2}}", "by=2"),
}
IN_PAIRS = f"tiling{{tile=128x32x64}},{TMA},clustering{{shape=2x1 pair=true}},{ROLES}"
SMALL = {
    "sm_90a": ROTATED,
    "sm_100a": {"alone": ROTATED["alone"], "in pairs": (IN_PAIRS, "together=1 by=3")},
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "what"), [(target, what) for target, known in SMALL.items() for what in known]
)
def test_every_step_is_multiplied_once(check_matmul, target, what, seed=1):
    """Six steps of K = 328, the last of them with 8 elements."""
    passes, how = SMALL[target][what]
    text = f"{passes},k-rotation{{{how}}}"
    m = 200 if what == "in pairs" else 40
    check_matmul(MatmulSpec(m, 136, 328), target=target, pipeline=text, seed=seed)


def test_rotated_steps_of_any_number_of_rows():
    spec = MatmulSpec(40, 72, 328, c_dtype="f32", dynamic_m=True, least_m=17, most_m=48)
    passes, how = ROTATED["alone"]
    compiled = compile_matmul(spec, target="sm_90a", pipeline=f"{passes},k-rotation{{{how}}}")
    kernel, b = DynamicKernel(as_bundle(compiled)), torch.randn(72, 328).bfloat16()
    for rows in (17, 48):
        a = torch.randn(rows, 328).bfloat16()
        torch.testing.assert_close(kernel(a, b), a.float() @ b.float().T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("sizes", "rotation"),
    [
        ((17, 4096, 4096), "k-rotation{along=n together=4 by=4}"),
        ((17, 6144, 4096), "k-rotation{along=m together=4 by=4}"),  # A and B exchanged
        ((16, 4096, 4096), ""),
        ((64, 4096, 4096), ""),  # tiles of 64x32, most of which is A
        ((24, 12288, 4096), ""),  # weights with more rows than gained
        ((32, 4096, 2048), ""),  # rows of weights 4 kB apart
    ],
)
def test_few_rows_of_far_weights_begin_elsewhere(sizes, rotation):
    compiled = compile_matmul(MatmulSpec(*sizes), target="h200", until="mlir")
    assert rotation in compiled.pipeline
    assert bool(rotation) == ("k-rotation" in compiled.pipeline)


def test_ctas_of_a_chosen_cluster_begin_alike():
    """Also where a cluster has more of them than begin alike else."""
    spec, target = MatmulSpec(17, 4096, 4096), target_for(MatmulSpec(17, 4096, 4096), "h200")
    chosen = choose_schedule(spec, target)
    for extent, together in ((1, 4), (2, 4), (8, 8)):
        schedule = replace(chosen, cluster=(1, extent))
        told = rotation_of(Problem.of(spec, target), schedule, target)
        assert told == f"k-rotation{{along=n together={together} by=4}}"


@pytest.mark.parametrize(
    ("sizes", "kernels", "rotated"),
    [
        ((4096, 4096), 64, [(17, 48)]),  # tiles of 64x32: 1.5 rows of A for each of weights
        ((12288, 4096), 64, []),
        ((4096, 2048), 64, []),
        ((4096, 4096), 3, []),  # with those by lanes there is room for one
    ],
)
def test_kernels_for_any_m_begin_elsewhere_for_rows_that_gain(monkeypatch, sizes, kernels, rotated):
    """A schedule has a kernel for those rows, and one for the others that it serves."""
    known, target = MatmulSpec(17, 4096, 4096), target_for(MatmulSpec(17, 4096, 4096), "h200")
    schedule = choose_schedule(known, target)
    assert schedule.tile[:2] == (64, 32)
    monkeypatch.setattr(buckets, "shared_schedules", lambda *_: [(schedule, [(1, ROWS_MOST)])])
    monkeypatch.setattr(buckets, "kernels_of", lambda _: kernels)
    found = buckets.buckets_of(MatmulSpec(64, *sizes, dynamic_m=True), target)
    assert [
        rows for each in found if "k-rotation" in each.pipeline for rows in each.ranges
    ] == rotated
    ranges = sorted(rows for each in found for rows in each.ranges)
    assert ranges[0][0] == 1 and ranges[-1][1] == ROWS_MOST
    assert all(least == before[1] + 1 for before, (least, _) in itertools.pairwise(ranges))


def test_ranges_are_cut_where_other_rows_begin_and_end():
    ranges = [(1, 20), (33, 40), (47, 60), (65, 70)]
    inside = [(17, 20), (33, 40), (47, 48)]
    assert cut_ranges(ranges, range(17, 49)) == (inside, [(1, 16), (49, 60), (65, 70)])
    assert cut_ranges([(1, 70)], range(17, 49)) == ([(17, 48)], [(1, 16), (49, 70)])
    assert cut_ranges([(1, 9)], range(17, 17)) == ([], [(1, 9)])

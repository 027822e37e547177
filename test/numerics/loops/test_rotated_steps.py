"""CTAs that begin with different steps along K: each still multiplies all of them, once."""

from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.rotation import rotation_of
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec

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


@pytest.mark.parametrize(
    ("target", "what"), [(target, what) for target, known in SMALL.items() for what in known]
)
def test_every_step_is_multiplied_once(check_matmul, target, what, seed=1):
    """Six steps of K = 328, the last of them with 8 elements."""
    passes, how = SMALL[target][what]
    text = f"{passes},k-rotation{{{how}}}"
    m = 200 if what == "in pairs" else 40
    check_matmul(MatmulSpec(m, 136, 328), target=target, pipeline=text, seed=seed)


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

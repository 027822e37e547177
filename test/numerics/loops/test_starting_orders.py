"""CTAs of one tile each that start along N, as is chosen where A is the larger operand."""

import pytest

from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

TARGETS = ("sm_90a", "sm_100a")
HEAD = "tiling{tile=64x32x64 order=n},tma-insertion,swizzle-selection"
ENDS = {
    "staged": ",epilogue-staging,pipelining{stages=3},warp-specialization",
    "split": ",split-k{parts=2},pipelining{stages=3},warp-specialization",
    "split over the grid": ",split-k{parts=3 over=grid},pipelining{stages=3},warp-specialization",
}
FIELDS = {
    "plain": {},
    "a stack": {"batch": 3},
    "one B for all": {"batch": 3, "b_stacked": False},
    "a sum of f32": {"c_dtype": "f32"},
    "M-major": {"a_major": "m"},
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_every_way_to_take_k_and_kind_of_operand(check_matmul, target, end, fields):
    spec = MatmulSpec(136, 40, 264, **fields)
    check_matmul(spec, pipeline=HEAD + ENDS[end], target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_ctas_that_start_together_share_the_larger_operand(check_matmul, target):
    """Order n shares a tile of the MMA's A, which is B where operands are exchanged."""
    spec = MatmulSpec(1000, 320, 512)
    alone = choose_schedule(spec, find_target(target))
    assert (alone.scheduler, alone.cluster_size) == ("none", 1)
    assert alone.order == ("m" if alone.swap else "n")
    assert ("order=n" in alone.pipeline()) is not alone.swap
    wide = choose_schedule(MatmulSpec(320, 1000, 512), find_target(target))
    assert wide.order == ("n" if wide.swap else "m")
    check_matmul(MatmulSpec(200, 72, 264), pipeline=alone.pipeline(), target=target)

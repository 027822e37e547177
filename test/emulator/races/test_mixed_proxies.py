"""A reduction by a copy and an atomic operation of a thread are no strong accesses to each other:
both must be made by the same proxy (PTX ISA §8.7.1)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums)
{ .reg .b32 %r<4>; .reg .b64 %sums; .reg .pred %p<3>;
  .shared .align 16 .b8 part[16]; .shared .align 8 .b64 bar;
  ld.param.u64 %sums, [sums]; mov.u32 %r1, part; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
  setp.ne.u32 %p0, %r2, 0; @%p0 ret; setp.ne.u32 %p1, %r3, 0;
  st.shared.v4.u32 [%r1], {1, 1, 1, 1}; fence.proxy.async.shared::cta;
  BODY
  ret; }
"""
REDUCE = """cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%sums], [%r1], 16;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
ADD = "red.relaxed.gpu.global.add.u32 [%sums], 1;\n"
LATE = "red.async.release.gpu.global.add.u32 [%sums], 1;\n"
OF_ONE = "@%p1 bra OTHER;\n {one} ret;\nOTHER: {other}"


def run(body: str, seed: int, grid: int = 1, text: str = TEXT) -> int:
    sums = np.zeros(8, np.uint32)
    text = text.replace("BODY", body)
    launch(text, "k", grid=grid, block=32, params=[sums], seed=seed)
    return int(sums[0])


@pytest.mark.parametrize("seed", range(2))
def test_a_copy_that_reduces_races_with_an_atomic_operation(seed):
    with pytest.raises(Trap) as caught:
        run(OF_ONE.format(one=REDUCE, other=ADD), seed, grid=2)
    assert caught.value.category == "race"
    assert "only one of the two is made by the async proxy" in str(caught.value)


@pytest.mark.parametrize("seed", range(2))
def test_it_races_with_a_reduction_that_comes_late_in_every_order(seed):
    """`red.async` is made by the generic proxy, by nobody's thread."""
    later = TEXT.replace("8.8", "9.1").replace("sm_90", "sm_100a")
    with pytest.raises(Trap) as caught:
        run(OF_ONE.format(one=REDUCE, other=LATE), seed, grid=2, text=later)
    assert caught.value.category == "race"
    assert run(OF_ONE.format(one=ADD, other=LATE), seed, grid=2, text=later) == 2


@pytest.mark.parametrize("seed", range(2))
def test_accesses_of_one_proxy_do_not_race(seed):
    assert run(REDUCE, seed, grid=2) == 2
    assert run(ADD, seed, grid=2) == 2
    both = f"{ADD.strip()} {REDUCE.replace('%sums', '%sums+16')}"  # on one line
    assert run(OF_ONE.format(one=both, other=ADD), seed, grid=2) == 2


@pytest.mark.parametrize("seed", range(2))
def test_an_atomic_operation_needs_a_fence_before_a_copy_that_reduces(seed):
    assert run(REDUCE + ADD, seed) == 2
    assert run(f"{ADD} fence.proxy.async.global; {REDUCE}", seed) == 2
    with pytest.raises(Trap) as caught:
        run(ADD + REDUCE, seed)
    assert caught.value.category == "proxy-fence"

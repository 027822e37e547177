"""An mbarrier that is initialised behind the fence of its warp (PTX ISA §9.7.13.4) is told of."""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 2 {
  .reg .b32 %r<9>; .reg .pred %p<9>; .shared .align 8 .b64 bar[2];
  mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, bar;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  FIRST
  @%p0 mbarrier.init.shared::cta.b64 [%r1+8], 1;
  SECOND
  barrier.cluster.arrive.HOW.aligned;
  MEET
  mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1;
  add.u32 %r3, %r1, 8; mapa.shared::cluster.u32 %r3, %r3, %r2;
  @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+8], 0; @!%p1 bra WAIT;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret; }
"""
FENCE, MEET = "fence.mbarrier_init.release.cluster;", "barrier.cluster.wait.aligned;"


def warnings(first: str = "", second: str = "", how: str = "relaxed", seed: int = 0) -> list[str]:
    text = KERNEL.replace("FIRST", first).replace("SECOND", second).replace("HOW", how)
    text = text.replace("MEET", MEET)
    out = [np.zeros(1, np.uint32)]
    report = launch(text, "k", grid=2, cluster=2, block=32, params=out, seed=seed)
    return [each.category for each in report.warnings]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_told_of_behind_the_fence_and_ahead_of_a_relaxed_barrier(seed):
    assert warnings(first=FENCE, seed=seed) == ["late-init"]


@pytest.mark.parametrize(
    "how",
    [{"second": FENCE}, {"first": FENCE, "second": FENCE}, {"first": FENCE, "how": "release"}],
)
def test_nothing_is_said_of_one_that_is_passed_on(how):
    assert warnings(**how) == []


@pytest.mark.parametrize("seed", range(4))
def test_without_any_fence_it_is_an_error(seed):
    with pytest.raises(Trap) as caught:
        warnings(seed=seed)
    assert caught.value.category == "missing-fence"


@pytest.mark.parametrize("seed", range(4))
def test_without_a_barrier_between_it_is_an_error(seed):
    text = KERNEL.replace("FIRST", FENCE).replace("SECOND", "").replace("HOW", "relaxed")
    text = text.replace("MEET", "").replace("aligned; barrier.cluster.wait", "aligned; bar.sync 0; "
                        "barrier.cluster.wait", 1)  # fmt: skip
    with pytest.raises(Trap) as caught:
        launch(text.replace("barrier.cluster.arrive.aligned;", ""), "k", grid=2, cluster=2,
               block=32, params=[np.zeros(1, np.uint32)], seed=seed)  # fmt: skip
    assert caught.value.category in ("missing-fence", "barrier-protocol")

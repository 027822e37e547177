"""Who may hand a copy an mbarrier that has just been initialised.

Copies access their mbarrier by the generic proxy (PTX ISA 9.4, cp.async.bulk: "accesses its
mbarrier operand using generic-proxy"), so program order passes an initialisation on to the copies
of its own lane, and a barrier to those of others. No proxy fence is needed, and
`fence.mbarrier_init` alone orders nothing.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch

KERNEL = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 source, .param .u64 out, .param .align 64 .b8 map[128]) {
  .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 full;
  .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<4>;
  ld.param.u64 %d0, [source]; ld.param.u64 %d1, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, full; mov.u32 %r2, tile; add.u32 %r3, %r2, 2048;
  mov.u32 %r4, 0; mov.b64 %d2, map; cvta.param.u64 %d2, %d2;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, ISSUER;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  BETWEEN
  @!%p1 bra WAIT;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 2048, [%r1];
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r3], [%d2, {%r4, %r4}], [%r1];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;
WAIT:
  bar.sync 0;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra AGAIN;
  mad.lo.u32 %r2, %r0, 64, %r2; mad.wide.u32 %d1, %r0, 4, %d1;
  ld.shared.u32 %r5, [%r2]; st.global.u32 [%d1], %r5;
  ret; }
"""
FENCE = "@%p0 fence.mbarrier_init.release.cluster;"


def run(issuer: int, between: str, seed: int) -> list[str]:
    source, out = np.arange(1024, dtype=np.uint32).reshape(32, 32), np.zeros(64, np.uint32)
    boxes = TensorMap(source, "uint32", dims=(32, 16), strides=(128,), box=(32, 16))
    text = KERNEL.replace("ISSUER", str(issuer)).replace("BETWEEN", between)
    report = launch(text, "k", grid=1, block=64, params=[source, out, boxes], seed=seed)
    half = np.arange(0, 512, 16, dtype=np.uint32)
    assert (out == np.concatenate([half, half])).all()
    return [each.category for each in report.warnings]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("issuer", "between"), [(0, ""), (0, FENCE), (1, "bar.warp.sync -1;"), (32, "bar.sync 0;")]
)
def test_the_own_lane_needs_no_fence_and_others_a_barrier(issuer, between, seed):
    assert run(issuer, between, seed) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("between", ["", FENCE])
@pytest.mark.parametrize("issuer", [1, 32])
def test_without_a_barrier_no_other_lane_may(issuer, between, seed):
    with pytest.raises(Trap) as caught:
        run(issuer, between, seed)
    assert caught.value.category in ("missing-fence", "barrier-protocol")

"""CTAs that have ended leave nothing in memory but marks of what they touched."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch
from tilewright.runtime.emulator.machine.cta import Cta

RESIDENT, CLUSTERS = 2, 24
# A warp announces bytes, a bulk copy brings them, another warp stores them; then the CTAs of the
# cluster meet, so that each knows of the other.
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {
  .shared .align 16 .b8 tile[128]; .shared .align 8 .b64 full;
  .reg .pred %one, %done; .reg .b32 %lane, %cta, %value, %at; .reg .b64 %in, %out;
  ld.param.u64 %out, [out]; ld.param.u64 %in, [in];
  mov.u32 %lane, %tid.x; mov.u32 %cta, %ctaid.x;
  setp.eq.u32 %one, %lane, 0;
  @%one mbarrier.init.shared::cta.b64 [full], 1;
  bar.sync 0;
  mad.wide.u32 %in, %cta, 128, %in;
  @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  @%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 128, [full];
W:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0;
  @!%done bra W;
  shl.b32 %at, %lane, 1; and.b32 %at, %at, 124;
  mov.u32 %value, tile; add.u32 %at, %at, %value;
  ld.shared.b32 %value, [%at];
  mad.lo.u32 %at, %cta, 64, %lane;
  mad.wide.u32 %out, %at, 4, %out;
  st.global.b32 [%out], %value;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}"""  # noqa: E501


@pytest.mark.parametrize("check", ["full", "shipped", "fast", "off"])
def test_no_more_ctas_are_in_memory_than_are_resident(check, monkeypatch):
    made: list[weakref.ref[Cta]] = []
    there: list[int] = []
    start = Cta.__init__

    def noted(self, *args):
        start(self, *args)
        made.append(weakref.ref(self))
        if len(made) == 2 * CLUSTERS:
            gc.collect()
            there.append(sum(cta() is not None for cta in made))

    monkeypatch.setattr(Cta, "__init__", noted)
    source = np.arange(2 * CLUSTERS * 32, dtype=np.uint32)
    out = np.zeros((2 * CLUSTERS, 64), np.uint32)
    launch(
        KERNEL, "k", grid=2 * CLUSTERS, block=64, cluster=2, params=[out, source],
        resident=2 * RESIDENT, check=check,
    )  # fmt: skip
    assert (out == source.reshape(-1, 32).repeat(2, axis=1)).all()
    assert there[0] <= 2 * (RESIDENT + 1)


def test_a_fault_at_the_end_of_a_text_without_ret_is_named_there():
    text = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() {
  .shared .b32 s;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
}
"""
    with pytest.raises(Trap, match="`}`: tmem: the CTA exits with tensor memory"):
        launch(text, "k", grid=1, block=32)

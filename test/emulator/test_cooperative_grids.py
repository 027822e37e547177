"""Cooperative launches: a workspace in %envreg1 and %envreg2, all CTAs resident (PTX ISA §10)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Deadlock, launch

CTAS, THREADS = 6, 40
KERNEL = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb) {
  .reg .b64 %rd<16>; .reg .b32 %r<16>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [pa]; ld.param.u64 %rd1, [pb];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r1, %r3, %r0; mad.wide.u32 %rd2, %r4, 4, %rd0;
  mul.lo.u32 %r5, %r4, 5; st.global.u32 [%rd2], %r5;
  WORKSPACE
  bar.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra JOIN;
  fence.acq_rel.gpu; atom.global.add.u32 %r8, [%rd3+4], 1;
  WAIT: ld.acquire.gpu.global.u32 %r9, [%rd3+4]; setp.lt.u32 %p1, %r9, %r2; @%p1 bra WAIT;
  JOIN: bar.sync 0;
  mul.lo.u32 %r10, %r2, %r3; sub.u32 %r11, %r10, %r4; sub.u32 %r11, %r11, 1;
  mad.wide.u32 %rd4, %r11, 4, %rd0; ld.global.u32 %r12, [%rd4];
  mad.wide.u32 %rd5, %r4, 4, %rd1; st.global.u32 [%rd5], %r12; ret; }"""
FROM_DRIVER = "mov.u32 %r6, %envreg2; mov.u32 %r7, %envreg1; mov.b64 %rd3, {%r6, %r7};"


@pytest.mark.parametrize("seed", range(3))
def test_every_cta_of_a_cooperative_grid_waits_for_all_others(seed):
    count = CTAS * THREADS
    a, out = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    text = KERNEL.replace("WORKSPACE", FROM_DRIVER)
    launch(text, "k", grid=CTAS, block=THREADS, params=[a, out], seed=seed)
    assert out.tolist() == [5 * (count - 1 - thread) for thread in range(count)]


def test_the_workspace_tells_its_size():
    text = KERNEL.replace(
        "WORKSPACE",
        f"{FROM_DRIVER} ld.global.u32 %r8, [%rd3]; st.global.u32 [%rd1], %r8; exit;",
    )
    out = np.zeros(1, np.uint32)
    launch(text, "k", grid=1, block=1, params=[np.zeros(1, np.uint32), out])
    assert out[0] == 8


def test_other_grids_may_not_wait_for_ctas_that_do_not_fit():
    count = CTAS * THREADS
    arrays = [np.zeros(count, np.uint32), np.zeros(count + 2, np.uint32)]
    text = KERNEL.replace("WORKSPACE", f"add.u64 %rd3, %rd1, {4 * count};").replace(
        "WAIT: ld.acquire", "WAIT: nanosleep.u32 1; ld.acquire"
    )
    with pytest.raises(Exception, match=r"steps|waits") as caught:
        launch(text, "k", grid=CTAS, block=THREADS, params=arrays, max_steps=20_000)
    assert isinstance(caught.value, Deadlock) or caught.value.category == "step-limit"
    unstarted = f"{CTAS - 4} clusters have not started: 4 CTAs fit at once (`resident`)"
    assert unstarted in str(caught.value)

"""atom on 128 bits, and accesses marked .mmio (PTX ISA §9.7.13.5, §9.7.9.8)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb) {
  .reg .b128 %q<4>; .reg .b64 %rd<16>; .reg .b32 %r<8>; .reg .pred %p<4>;
  .shared .align 16 .b8 cell[16];
  ld.param.u64 %rd0, [pa]; ld.param.u64 %rd1, [pb]; mov.u32 %r0, %tid.x;
  cvt.u64.u32 %rd2, %r0; mad.wide.u32 %rd3, %r0, 16, %rd1;
"""


def run(body: str, *arrays):
    launch(HEADER + body + "ret; }", "k", grid=1, block=32, params=list(arrays))


def test_every_lane_exchanges_with_the_one_before():
    cell, out = np.array([111, 222], np.uint64), np.zeros((32, 2), np.uint64)
    run(
        """add.u64 %rd4, %rd2, 1000; mov.b128 %q0, {%rd2, %rd4};
        atom.relaxed.gpu.global.exch.b128 %q1, [%rd0], %q0; st.global.b128 [%rd3], %q1;""",
        cell,
        out,
    )
    seen = {tuple(row) for row in out.tolist()} | {tuple(cell.tolist())}
    assert seen == {(111, 222)} | {(lane, lane + 1000) for lane in range(32)}


@pytest.mark.parametrize("high, wanted", [(222, (5, 6)), (223, (111, 222))])
def test_both_words_must_agree_for_a_swap(high, wanted):
    cell, out = np.array([111, 222], np.uint64), np.zeros((32, 2), np.uint64)
    body = f"""mov.b64 %rd4, 111; mov.b64 %rd5, {high}; mov.b128 %q0, {{%rd4, %rd5}};
      mov.b64 %rd6, 5; mov.b64 %rd7, 6; mov.b128 %q1, {{%rd6, %rd7}}; setp.eq.u32 %p0, %r0, 9;
      @%p0 atom.cas.b128 %q2, [%rd0], %q0, %q1; @%p0 st.global.b128 [%rd1], %q2;"""
    run(body, cell, out)
    assert tuple(cell.tolist()) == wanted and out[0].tolist() == [111, 222]


def test_128_bits_in_shared_memory_are_exchanged():
    cell, out = np.array([7, 8], np.uint64), np.zeros((32, 2), np.uint64)
    run(
        """ld.global.b128 %q0, [%rd0]; st.shared.b128 [cell], %q0; bar.sync 0;
        mov.b128 %q1, {%rd2, %rd2}; setp.eq.u32 %p0, %r0, 3;
        @%p0 atom.shared::cta.exch.b128 %q2, [cell], %q1; @%p0 st.global.b128 [%rd3], %q2;
        bar.sync 0; ld.shared.b128 %q3, [cell]; @!%p0 st.global.b128 [%rd3], %q3;""",
        cell,
        out,
    )
    assert out.tolist() == [[7, 8] if lane == 3 else [3, 3] for lane in range(32)]


def test_device_register_accesses_are_loads_and_stores():
    source, out = np.array([41], np.uint32), np.zeros(1, np.uint32)
    run(
        """ld.mmio.relaxed.sys.global.u32 %r1, [%rd0]; add.u32 %r1, %r1, 1;
        st.mmio.relaxed.sys.global.u32 [%rd1], %r1;""",
        source,
        out,
    )
    assert out.tolist() == [42]

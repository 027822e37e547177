"""fence.sc orders what it must: where a read behind one came before a write ahead of the other.

PTX ISA §8.9: the order of fence.sc is one of each run, and fences that come first synchronize with
later ones. A kernel may rely on it only as far as the values that it reads tell of it.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(24)
HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHER;
"""
WRITER = """st.global.b32 [%rd0], 41; {fence} ld.relaxed.gpu.global.b32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0; @%p1 bra END; st.relaxed.gpu.global.b32 [%rd1+32], 1; bra END;"""
"""It tells that it was first, by a flag without release."""
READER = """OTHER: st.relaxed.gpu.global.b32 [%rd1], 1; {fence}
  ld.relaxed.gpu.global.b32 %r1, [%rd1+32]; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;
  ld.global.b32 %r2, [%rd0]; st.global.b32 [%rd2], %r2;"""


def outcomes(writer: str, reader: str, cluster: int = 1) -> list[int | str]:
    """What the reader read, 0 for nothing, or the verdict, of every seed."""
    found = []
    for seed in SEEDS:
        params = [np.zeros(8, np.uint32), np.zeros(16, np.uint32), np.zeros(8, np.uint32)]
        text = HEADER + WRITER.format(fence=writer) + READER.format(fence=reader) + "END: ret; }"
        try:
            launch(text, "k", grid=2, block=1, cluster=cluster, params=params, seed=seed)
            found.append(int(params[2][0]))
        except Trap as trap:
            assert trap.category == "race"
            found.append("race")
    return found


@pytest.mark.parametrize("fence", ["fence.sc.gpu;", "fence.sc.sys;", "membar.gl;"])
def test_who_was_first_by_what_was_read_is_ordered_before(fence):
    found = outcomes(fence, fence)
    assert set(found) == {0, 41}


def test_a_cluster_is_reached_by_its_scope():
    assert set(outcomes("fence.sc.cluster;", "fence.sc.cluster;", cluster=2)) == {0, 41}


@pytest.mark.parametrize("writer, reader", [
    ("fence.acq_rel.gpu;", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.acq_rel.gpu;"),
    ("fence.sc.cta;", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.sc.cluster;"),
])  # fmt: skip
def test_weaker_or_narrower_fences_order_nothing(writer, reader):
    found = outcomes(writer, reader)
    assert "race" in found and 41 not in found


def test_two_fences_alone_are_in_no_order_that_a_kernel_can_know():
    """Whichever comes first in a run, it might have been the other."""
    body = "st.global.b32 [%rd0], 41; fence.sc.gpu; bra END; OTHER: fence.sc.gpu;"
    for seed in SEEDS:
        params = [np.zeros(8, np.uint32), np.zeros(16, np.uint32), np.zeros(8, np.uint32)]
        text = HEADER + body + "ld.global.b32 %r2, [%rd0]; END: ret; }"
        with pytest.raises(Trap, match="race"):
            launch(text, "k", grid=2, block=1, params=params, seed=seed)

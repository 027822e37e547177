"""What others do with a tcgen05.st that its warp has not waited for (PTX ISA §9.7.16.8.5)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(4)
TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .pred %p<6>;
  .shared .align 8 .b64 full; .shared .align 4 .b32 place;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, full; mov.u32 %r2, place;
  setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.lt.u32 %p2, %r0, 128;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 128;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %r3, [%r2]; and.b32 %r4, %r0, 96; shl.b32 %r4, %r4, 16; add.u32 %r4, %r4, %r3;
  @!%p2 bra READER;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {{%r0}}; {again}
  {before} {arrive} {after}
  bra END;
READER: {wait}
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r5}}, [%r4]; tcgen05.wait::ld.sync.aligned;
  and.b32 %r6, %r0, 127; mul.wide.u32 %rd1, %r6, 4; add.s64 %rd1, %rd0, %rd1;
  st.global.b32 [%rd1], %r5; tcgen05.fence::before_thread_sync;
END: bar.sync 0; tcgen05.fence::after_thread_sync;
  setp.ge.u32 %p4, %r0, 224; @%p4 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
  ret; }}
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r1];"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0; @!%p3 bra W;"
AGAIN = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r0};"
STORED = "tcgen05.wait::st.sync.aligned;"
FENCE = "tcgen05.fence::before_thread_sync;"


def run(seed: int, check: str, **parts: str) -> set[str]:
    out = np.zeros(128, np.uint32)
    parts = {"again": "", "before": "", "arrive": ARRIVE, "after": "", "wait": WAIT, **parts}
    report = launch(TEXT.format(**parts), "k", grid=1, block=256, params=[out], seed=seed,
                    check=check)  # fmt: skip
    assert np.array_equal(out, np.arange(128))
    return {warning.category for warning in report.warnings}


def refused(seed: int, check: str, **parts: str) -> str:
    with pytest.raises(Trap) as caught:
        run(seed, check, **parts)
    return caught.value.category


def test_a_wait_and_a_fence_hand_it_on():
    for seed in SEEDS:
        assert not run(seed, "full", before=STORED + FENCE)


@pytest.mark.parametrize("after", ["", STORED + FENCE])
def test_its_issue_alone_hands_on_nothing(after):
    """CUTLASS's attention for sm_100a hands on the statistics of rows so."""
    for seed in SEEDS:
        assert refused(seed, "full", after=after) in ("missing-wait", "missing-fence", "race")
        told = run(seed, "shipped", after=after)
        assert "unwaited-store" in told and told <= {"unwaited-store", "unfenced"}


def test_of_two_stores_to_the_same_columns_the_last_ones_issue_counts():
    for seed in SEEDS:
        for place in ("again", "before"):
            told = run(seed, "shipped", after=STORED + FENCE, **{place: AGAIN})
            assert "unwaited-store" in told
        assert refused(seed, "shipped", arrive=ARRIVE + AGAIN, after=STORED + FENCE) == "race"


def test_who_is_not_ordered_behind_its_issue_is_refused_all_the_same():
    for seed in SEEDS:
        assert refused(seed, "shipped", wait="") in ("missing-wait", "uninitialised-read", "race")


def test_its_own_warp_must_wait():
    """PTX ISA §9.7.16.6.3: tcgen05.st and tcgen05.ld of a warp are pipelined in no order."""
    own = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r4]; tcgen05.wait::ld.sync.aligned;"
    for seed in SEEDS:
        assert refused(seed, "shipped", before=own) == "missing-wait"

"""Who reads what several have added to must be ordered behind each of them, in every order of
events, and not only behind the last one, which may be its own."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS, CTAS = range(6), 4
TEXT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 sum, .param .u64 count, .param .u64 out)
{{ .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p0;
  ld.param.u64 %rd0, [sum]; ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [out];
  mov.f32 %f0, 2.0; red.relaxed.gpu.global.add.f32 [%rd0], %f0;
  {fence_before}
  atom.{order}.gpu.global.add.u32 %r0, [%rd1], 1;
  {fence_behind}
  setp.ne.u32 %p0, %r0, {last}; @%p0 bra END;
  ld.global.f32 %f1, [%rd0]; st.global.f32 [%rd2], %f1;
END: ret; }}
"""


def run(seed: int, order: str, before: str = "", behind: str = "") -> float:
    text = TEXT.format(order=order, fence_before=before, fence_behind=behind, last=CTAS - 1)
    arrays = np.zeros(1, np.float32), np.zeros(1, np.uint32), np.zeros(1, np.float32)
    launch(text, "k", grid=CTAS, block=1, params=[*arrays], seed=seed)
    return float(arrays[2][0])


@pytest.mark.parametrize(
    "how", [("acq_rel",), ("relaxed", "fence.acq_rel.gpu;", "fence.acq_rel.gpu;")]
)
def test_sums_that_are_acquired_are_right(how):
    for seed in SEEDS:
        assert run(seed, *how) == 2 * CTAS


@pytest.mark.parametrize(
    "how",
    [
        ("release",),
        ("acquire",),
        ("relaxed",),
        ("relaxed", "fence.acq_rel.gpu;", ""),
        ("relaxed", "", "fence.acq_rel.gpu;"),
        ("relaxed", "fence.acq_rel.cta;", "fence.acq_rel.gpu;"),
    ],
)
def test_sums_that_are_read_without_an_order_race(how):
    for seed in SEEDS:
        with pytest.raises(Trap, match="the read of 4 bytes") as caught:
            run(seed, *how)
        assert caught.value.category == "race"


TICKET = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 count, .param .u64 out)
{{ .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p0;
  ld.param.u64 %rd0, [count]; ld.param.u64 %rd1, [out];
  {draw}; setp.ne.u32 %p0, %r0, {last}; @%p0 bra END;
  ld.global.u32 %r1, [%rd0]; st.global.u32 [%rd1], %r1; st.global.u32 [%rd0], 0;
END: ret; }}
"""


def drawn(seed: int, draw: str) -> tuple[int, int]:
    count, out = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    text = TICKET.format(draw=draw, last=CTAS - 1)
    launch(text, "k", grid=CTAS, block=1, params=[count, out], seed=seed)
    return int(count[0]), int(out[0])


def test_who_draws_the_last_ticket_has_observed_the_others():
    """PTX ISA §8.9.5: each has observed the one before, and needs no fence for the place itself"""
    draw = "atom.relaxed.gpu.global.add.u32 %r0, [%rd0], 1"
    for seed in SEEDS:
        assert drawn(seed, draw) == (0, CTAS)
        both = f"red.relaxed.gpu.global.add.u32 [%rd0], 1; {draw}; sub.u32 %r0, %r0, {CTAS}"
        assert drawn(seed, both) == (0, 2 * CTAS)


def test_who_adds_without_a_ticket_has_observed_nobody():
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            drawn(seed, f"red.relaxed.gpu.global.add.u32 [%rd0], 1; mov.u32 %r0, {CTAS - 1}")
        assert caught.value.category == "race"


SHARED = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<2>; .reg .pred %p<4>; .shared .b32 sum;
  ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5;
  setp.ne.u32 %p1, %r2, 0; setp.eq.u32 %p0, %r1, 0; @%p0 st.shared.b32 [sum], 0; bar.sync 0;
  setp.eq.u32 %p2, %r3, 2; setp.eq.u32 %p3, %r3, 1; @%p2 bra READ; mov.f32 %f0, 2.0;
  @!%p1 {add}; {arrive}; bra END;
READ: bar.sync 1, {threads}; @%p1 bra END; ld.shared.f32 %f1, [sum]; st.global.f32 [%rd0], %f1;
END: ret; }}
"""


def shared_sum(seed: int, arrive: str, threads: int, add: str) -> float:
    """Two warps add, and those that arrive are waited for by a third one."""
    out = np.zeros(1, np.float32)
    text = SHARED.format(arrive=f"{arrive} {threads}", threads=threads, add=add)
    launch(text, "k", grid=1, block=96, params=[out], seed=seed)
    return float(out[0])


def test_sums_in_shared_memory_need_an_order_behind_each_who_added():
    add = "red.relaxed.cta.shared.add.f32 [sum], %f0"
    for seed in SEEDS:
        assert shared_sum(seed, "bar.arrive 1,", 96, add) == 4
        with pytest.raises(Trap, match=r"race: the (read|write) of 4 bytes") as caught:
            shared_sum(seed, "@%p3 bar.arrive 1,", 64, add)
        assert caught.value.category == "race"

"""Warps are held where CTAs find each other in global memory, while others do all that they do."""

from __future__ import annotations

import numpy as np

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(16)
HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 parts, .param .u64 words)
{ .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [parts]; ld.param.u64 %rd2, [words];
  mov.u32 %r0, %ctaid.x; mul.wide.u32 %rd3, %r0, 4;
"""
# Each CTA counts in a loop; how many others came between the first two of its own.
BETWEEN = """mov.u32 %r3, 0; add.s64 %rd3, %rd0, %rd3;
  atom.global.add.u32 %r1, [%rd2], 1; atom.global.add.u32 %r2, [%rd2], 1;
  sub.u32 %r2, %r2, %r1; st.global.u32 [%rd3], %r2;
LOOP: atom.global.add.u32 %r1, [%rd2], 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 62;
  @%p0 bra LOOP; ret; }
"""
# Each CTA writes its part, counts itself in, looks some times whether the others are there and
# comes to the turnstile. Who comes last adds up the parts, whether it has seen the others or not.
TURNSTILE = """add.s64 %rd3, %rd1, %rd3; add.u32 %r1, %r0, 1; st.global.u32 [%rd3], %r1;
  fence.acq_rel.gpu; atom.global.relaxed.gpu.add.u32 %r2, [%rd2], 1; mov.u32 %r3, 0;
LOOK: ld.relaxed.gpu.global.u32 %r2, [%rd2]; add.u32 %r3, %r3, 1;
  setp.eq.u32 %p0, %r2, 3; setp.ge.or.u32 %p0, %r3, 4, %p0; @!%p0 bra LOOK;
  fence.acq_rel.gpu; atom.global.relaxed.gpu.add.u32 %r4, [%rd2+4], 1; FENCE
  setp.ne.u32 %p1, %r4, 2; @%p1 ret;
  ld.global.u32 %r5, [%rd1]; ld.global.u32 %r6, [%rd1+4]; ld.global.u32 %r7, [%rd1+8];
  add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd0], %r5; ret; }
"""
FENCE = "fence.acq_rel.gpu;"


def run(body: str, grid: int, seed: int, check: str = "full") -> np.ndarray:
    out, parts, words = (np.zeros(3, np.uint32) for _ in range(3))
    params = [out, parts, words]
    launch(HEAD + body, "k", grid=grid, block=1, params=params, seed=seed, check=check)
    return out


def between(seed: int, check: str = "full") -> int:
    return int(run(BETWEEN, 2, seed, check).max()) - 1


def test_others_may_do_all_that_they_do_between_two_accesses():
    found = [between(seed) for seed in SEEDS]
    assert max(found) == 64
    assert found.count(0) >= len(SEEDS) // 3
    late = found.index(64)
    assert between(late) == 64, "a seed is one order of events"
    assert between(late, "shipped") < 64, "warps run at the same speed"


def test_a_fence_that_counts_only_where_one_was_held_is_missed():
    """Who comes last without having seen the others acquires nothing."""
    missed = 0
    for seed in SEEDS:
        assert run(TURNSTILE.replace("FENCE", FENCE), 3, seed)[0] == 6
        try:
            run(TURNSTILE.replace("FENCE", ""), 3, seed)
        except Trap as trap:
            missed += trap.category == "race"
    assert missed >= 2


def test_what_a_held_access_gives_is_defined():
    """A register that is read only where it was written, by a warp that was held there."""
    guarded = """setp.eq.u32 %p0, %r0, 0; @%p0 atom.global.add.u32 %r2, [%rd2], 1;
      @%p0 st.global.u32 [%rd0], %r2; ret; }"""
    for seed in SEEDS:
        run(guarded, 2, seed)

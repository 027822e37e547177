"""Threads that do what others do, and store nothing, may read what those store in place."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(6)
# Two warps have the same 32 elements. The first one stores them.
TEXT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{{ .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<6>;
  ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd0, %rd2;
  mul.wide.u32 %rd4, %r0, 4; add.s64 %rd5, %rd1, %rd4; {before}
  mov.u32 %r2, 0;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r3, %r2, 1; setp.lt.u32 %p0, %r0, 32;
  {middle}
  @%p0 st.global.u32 [%rd3], %r3;
  {after} ret; }}
"""
OWNERS = {
    "nothing else": {},
    "the guard known ahead of the load": {
        "before": "setp.lt.u32 %p1, %r0, 32;", "after": "@%p1 st.global.u32 [%rd5], %r3;",
    },
    "an atomic operation that others execute": {"after": "@%p0 red.global.add.u32 [%rd5], %r3;"},
    "a choice": {"after": "selp.u32 %r4, %r3, %r2, %p0; @!%p0 mov.u32 %r4, 0;"},
}  # fmt: skip
USERS = {
    "a store of its own": {"after": "@!%p0 st.global.u32 [%rd5], %r3;"},
    "a store of its own that comes first": {"middle": "@!%p0 st.global.u32 [%rd5], %r3;"},
    "a store whose guard was known": {
        "before": "setp.ge.u32 %p1, %r0, 48;", "after": "@%p1 st.global.u32 [%rd5], %r3;",
    },
    "a store without a guard": {"after": "st.global.u32 [%rd5], %r3;"},
    "a shuffle": {
        "middle": "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; add.u32 %r3, %r3, %r4;",
    },
    "an atomic operation": {"after": "@!%p0 red.global.add.u32 [%rd5], %r3;"},
    "an address": {
        "after": "and.b32 %r4, %r3, 28; cvt.u64.u32 %rd6, %r4; add.s64 %rd6, %rd1, %rd6;"
        "@!%p0 st.global.u32 [%rd6], 9;",
    },
    "a guard": {"after": "setp.gt.u32 %p2, %r3, 40; @%p2 st.global.u32 [%rd5], 9;"},
    "a branch": {"after": "setp.gt.u32 %p2, %r3, 40; @%p2 bra END; END:"},
    "a carry": {
        "middle": "add.cc.u32 %r4, %r3, -40; addc.u32 %r5, 0, 0; @!%p0 st.global.u32 [%rd5], %r5;",
    },
    "an earlier load of the same": {
        "before": "ld.global.u32 %r6, [%rd3];", "after": "@!%p0 st.global.u32 [%rd5], %r6;",
    },
    "a guard that changes": {
        "before": "setp.ge.u32 %p1, %r0, 32; setp.lt.u32 %p3, %r0, 999;",
        "middle": "@%p1 st.global.u32 [%rd5], %r3; @%p3 setp.gt.u32 %p1, %r0, 999;",
    },
}  # fmt: skip


def run(parts: dict[str, str], seed: int, block: int = 64) -> np.ndarray:
    text = TEXT.format(**{"before": "", "middle": "", "after": ""} | parts)
    x, out = np.arange(32, dtype=np.uint32), np.zeros(block, np.uint32)
    launch(text, "k", grid=1, block=block, params=[x, out], seed=seed)
    return x


@pytest.mark.parametrize("name", OWNERS)
def test_a_value_that_no_store_takes_does_no_harm(name):
    for seed in SEEDS:
        assert (run(OWNERS[name], seed) == np.arange(1, 33)).all()


@pytest.mark.parametrize("name", USERS)
def test_one_that_something_takes_is_a_race_in_every_order(name):
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(USERS[name], seed)
        assert caught.value.category == "race"


def test_a_value_is_used_by_a_warp_that_is_not_among_the_last_readers():
    second = "shr.u32 %r6, %r0, 5; setp.eq.u32 %p1, %r6, 1;"
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run({"before": second, "after": "@%p1 st.global.u32 [%rd5], %r3;"}, seed, 128)
        assert caught.value.category == "race"


def test_any_number_of_ctas_may_read_so():
    place = "mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd6, %r6, 128;"
    parts = {"before": f"{place} add.s64 %rd7, %rd3, %rd6;", "middle": "", "after": ""}
    text = TEXT.replace("[%rd3]", "[%rd7]").format(**parts)
    x, out = np.zeros((520, 32), np.uint32), np.zeros(128, np.uint32)
    launch(text, "k", grid=520, block=128, params=[x, out], seed=1)
    assert (x == 1).all()

"""Lanes of one plain store must not write different values to one place: which stays is undefined.

CUDA C++ Programming Guide, "SIMT Architecture": which thread performs the final write is undefined;
PTX ISA §8.7: two overlapping weak writes that nothing orders are a data race.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data)
{{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>; .shared .align 16 .b8 tile[1024];
  mov.u32 %r0, %tid.x; mov.b32 %r1, 7; setp.eq.u32 %p0, %r0, 0; {base}
  and.b32 %r2, %r0, 28; cvt.u64.u32 %rd1, %r2; add.s64 %rd1, %rd0, %rd1;
  cvt.u64.u32 %rd2, %r0; add.s64 %rd2, %rd0, %rd2;
  st.{space}.b32 [%rd0], 0; {stores}
  ret; }}
"""
BASES = {
    "shared": "mov.u32 %r3, tile; cvt.u64.u32 %rd0, %r3;",
    "global": "ld.param.u64 %rd0, [data];",
}
CONFLICTS = {
    "one place": "st.{space}.b32 [%rd0], %r0;",
    "one place for four": "st.{space}.b32 [%rd1], %r0;",
    "an element of a vector": "st.{space}.v4.b32 [%rd0], {{%r1, %r1, %r0, %r1}};",
    "a byte": "st.{space}.b8 [%rd0], %r0;",
    "the last of those that store": "setp.lt.u32 %p1, %r0, 2; @%p1 st.{space}.b32 [%rd0], %r0;",
}
AGREEMENTS = {
    "the value": "st.{space}.b32 [%rd0], %r1;",
    "one lane": "@%p0 st.{space}.b32 [%rd0], %r0;",
    "neighbours": "st.{space}.b8 [%rd2], %r0;",
    "the part that is stored": "or.b32 %r4, %r0, 31; st.{space}.b8 [%rd0], %r4;",
    "atomics": "red.relaxed.gpu.{space}.add.u32 [%rd0], %r0;",
    "strong stores": "st.relaxed.gpu.{space}.b32 [%rd0], %r0;",
    "volatile stores": "st.volatile.{space}.b32 [%rd0], %r0;",
}


def run(stores: str, space: str, check: str = "full") -> None:
    text = TEXT.format(base=BASES[space], space=space, stores=stores.format(space=space))
    launch(text, "k", grid=1, block=32, params=[np.zeros(64, np.int32)], check=check)


@pytest.mark.parametrize("space", BASES)
@pytest.mark.parametrize("name", CONFLICTS)
def test_lanes_that_disagree_are_named(name, space):
    with pytest.raises(Trap, match=r"lanes 0 and 1 meet at one address") as caught:
        run(CONFLICTS[name], space)
    assert caught.value.category == "race"
    run(CONFLICTS[name], space, "fast")


@pytest.mark.parametrize("space", BASES)
@pytest.mark.parametrize("name", AGREEMENTS)
def test_what_agrees_or_is_strong_is_none(name, space):
    run(AGREEMENTS[name], space)


def test_rows_of_stmatrix_that_meet_are_named():
    body = "mov.u32 %r3, tile; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {{%r0}};"
    with pytest.raises(Trap, match=r"lanes 0 and 1 meet at one address"):
        run(body, "shared")

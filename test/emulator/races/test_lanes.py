"""Of the instructions of a warp bar.warp.sync alone orders what its lanes do in memory.

PTX ISA §9.7.13.2 has it of bar.warp.sync. Of shfl, vote, match, redux, elect, ldmatrix and others
that wait for all lanes it says nothing (CUDA C++ Programming Guide: they imply no memory barrier).
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{{ .reg .b32 %r<8>; .reg .pred %p<2>; .shared .align 16 .b8 tile[512];
  mov.u32 %r0, %tid.x; mov.u32 %r1, tile; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;
  xor.b32 %r4, %r2, 4; add.u32 %r4, %r4, %r1; setp.eq.u32 %p0, %r0, 0;
  st.shared.b32 [%r3], %r0;
  {between}
  ld.shared.b32 %r5, [%r4];
  ret; }}
"""
NO_ORDER = {
    "shfl": "shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;",
    "vote": "vote.sync.ballot.b32 %r5, %p0, -1;",
    "match": "match.any.sync.b32 %r5, %r0, -1;",
    "redux": "redux.sync.add.u32 %r5, %r0, -1;",
    "elect": "elect.sync %r5|%p1, -1;",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r1];",
    "stmatrix": "and.b32 %r6, %r0, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r1;"
    " stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6+256], {%r0};",
    "a fence": "fence.acq_rel.cta;",
}


@pytest.mark.parametrize("between", NO_ORDER)
def test_it_does_not_order_the_lanes(between):
    for seed in range(3):
        with pytest.raises(Trap, match=r"lanes of a warp need bar\.warp\.sync") as caught:
            launch(TEXT.format(between=NO_ORDER[between]), "k", grid=1, block=32, seed=seed)
        assert caught.value.category == "race"


@pytest.mark.parametrize("between", ["bar.warp.sync -1;", "bar.sync 0;", "barrier.sync 1, 32;"])
def test_a_barrier_does(between):
    launch(TEXT.format(between=between), "k", grid=1, block=32)


GLOBAL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data)
{{ .reg .b32 %r<8>; .reg .b64 %rd<4>; ld.param.u64 %rd0, [data]; mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4; add.u64 %rd2, %rd0, %rd1; xor.b64 %rd1, %rd1, 4;
  add.u64 %rd3, %rd0, %rd1;
  st.global.b32 [%rd2], %r0;
  {between}
  {access}
  ret; }}
"""
LOAD, STORE = "ld.global.b32 %r5, [%rd3];", "add.u32 %r5, %r0, 100; st.global.b32 [%rd3], %r5;"


@pytest.mark.parametrize("access", [LOAD, STORE])
@pytest.mark.parametrize("between", ["", NO_ORDER["shfl"], "membar.gl;"])
def test_nor_in_global_memory(access, between):
    text = GLOBAL.format(between=between, access=access)
    for seed in range(3):
        with pytest.raises(Trap, match=r"lanes of a warp need bar\.warp\.sync") as caught:
            launch(text, "k", grid=1, block=32, params=[np.zeros(64, np.int32)], seed=seed)
        assert caught.value.category == "race"


@pytest.mark.parametrize("access", [LOAD, STORE])
def test_a_barrier_does_in_global_memory(access):
    text = GLOBAL.format(between="bar.warp.sync -1;", access=access)
    launch(text, "k", grid=1, block=32, params=[np.zeros(64, np.int32)])


def test_a_lane_reads_what_it_has_written_itself():
    text = GLOBAL.format(between="", access="ld.global.b32 %r5, [%rd2];")
    launch(text, "k", grid=1, block=32, params=[np.zeros(64, np.int32)])


@pytest.mark.parametrize("space", ["shared", "global"])
def test_lanes_that_write_a_byte_at_once_have_each_written_it(space):
    text = GLOBAL.replace("{{ .reg", "{{ .shared .b32 word; .reg", 1)
    place = "[word]" if space == "shared" else "[%rd0+128]"
    access = f"mov.b32 %r1, 7; st.{space}.b32 {place}, %r1; ld.{space}.b32 %r5, {place};"
    text = text.format(between="", access=access)
    launch(text, "k", grid=1, block=32, params=[np.zeros(64, np.int32)])

"""Of the instructions of a warp bar.warp.sync alone orders what its lanes do in memory.

PTX ISA §9.7.13.2 has it of bar.warp.sync. Of shfl, vote, match, redux, elect, ldmatrix and others
that wait for all lanes it says nothing (CUDA C++ Programming Guide: they imply no memory barrier).
"""

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
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+256], {%r0};",
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

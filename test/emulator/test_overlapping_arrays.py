"""Views of one buffer are one run of global memory, as on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import GlobalArray, LaunchError, Trap, launch

HEAD = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .pred %p;
  ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %tid.x; setp.ge.u32 %p, %r0, 32;
"""
RACE = HEAD + "@!%p st.global.u32 [%rd0], 7; @%p ld.global.u32 %r1, [%rd1]; ret; }"
ADDRESSES = HEAD + "sub.s64 %rd3, %rd1, %rd0; st.global.u64 [%rd2], %rd3; ret; }"
ALIGNED = HEAD + "and.b64 %rd3, %rd1, 63; st.global.u64 [%rd2], %rd3; ret; }"
STORED = HEAD + "st.global.u32 [%rd0], 7; ret; }"
VIEWS = {
    "the same bytes by another type": lambda a: a.view(np.uint8),
    "another shape": lambda a: a.reshape(4, 16),
    "a slice": lambda a: a[:8],
    "backwards": lambda a: a[::-1][-1:],
    "read-only": lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    "every second element": lambda a: a[::2],
    "a transpose": lambda a: a.reshape(4, 16).T,
}


def run(text: str, x, y, seed: int = 0) -> int:
    out = np.zeros(1, np.int64)
    launch(text, "k", grid=1, block=64, params=[x, y, out], seed=seed)
    return int(out[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", VIEWS)
def test_a_race_between_views_of_one_buffer_is_seen(name, seed):
    a = np.zeros(64, np.uint32)
    with pytest.raises(Trap) as caught:
        run(RACE, a, VIEWS[name](a), seed)
    assert caught.value.category == "race"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_lies_where_numpy_has_it(name):
    a = np.zeros(64, np.uint32)
    view = VIEWS[name](a)
    apart = view.__array_interface__["data"][0] - a.__array_interface__["data"][0]
    assert run(ADDRESSES, a, view) == apart
    assert run(ADDRESSES, view, a) == -apart


def test_views_that_share_no_byte_stay_apart():
    """So that a step from one half into the other is out of bounds"""
    a = np.zeros((8, 16), np.uint32)
    for x, y in ((a[:4], a[4:]), (a[:, :8], a[:, 8:])):
        assert abs(run(ADDRESSES, x, y)) > a.nbytes
        run(RACE, x, y)


def test_slices_that_a_third_joins_are_one_region():
    a = np.zeros(64, np.uint32)
    text = HEAD.replace(".param .u64 out", ".param .u64 out, .param .u64 z") + (
        "sub.s64 %rd3, %rd1, %rd0; st.global.u64 [%rd2], %rd3; ret; }"
    )
    out = np.zeros(1, np.int64)
    launch(text, "k", grid=1, block=32, params=[a[:16], a[48:], out, a[8:56]])
    assert out[0] == 48 * 4


def test_what_one_view_writes_the_other_reads_and_the_array_holds():
    a = np.zeros(64, np.uint32)
    text = HEAD + "st.global.u32 [%rd0], 7; ld.global.u8 %r1, [%rd1]; cvt.u64.u32 %rd3, %r1;"
    assert run(text + "st.global.u64 [%rd2], %rd3; ret; }", a, a.view(np.uint8)) == 7
    assert a[0] == 7


def test_bytes_that_no_view_has_cannot_be_touched():
    a = np.zeros(64, np.uint32)
    text = HEAD + "ld.global.u32 %r1, [%rd0+8]; ret; }"
    with pytest.raises(Trap) as caught:
        run(text, a[::4], a[::2][:1])
    assert caught.value.category == "out-of-bounds"


def test_an_address_asked_for_holds_for_the_views():
    a = np.zeros(64, np.uint32)
    assert run(ALIGNED, a, GlobalArray(a[2:], align=64, offset=16)) == 16
    assert run(ALIGNED, GlobalArray(a, align=64, offset=16), a[3:]) == 28


def test_two_addresses_for_the_same_bytes_are_refused():
    a = np.zeros(64, np.uint32)
    with pytest.raises(LaunchError, match="shares bytes with another array"):
        run(ALIGNED, GlobalArray(a, offset=16), GlobalArray(a[1:], offset=16))


@pytest.mark.parametrize("given", [lambda masked: masked, GlobalArray])
def test_a_mask_is_refused_and_not_passed_over(given):
    with pytest.raises(LaunchError, match=r"parameter 0 \(x\): must have no mask, got a masked"):
        run(STORED, given(np.ma.array(np.zeros(4, np.uint8), mask=True)), np.zeros(4))

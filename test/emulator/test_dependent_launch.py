"""griddepcontrol.wait (PTX ISA §9.7.13.13): a prerequisite grid's arrays wait for it."""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

COPY = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
  .reg .b64 %x, %out; .reg .b32 %v;
  ld.param.u64 %x, [x]; ld.param.u64 %out, [out];
  FIRST
  ld.global.u32 %v, [%x];
  SECOND
  st.global.u32 [%out], %v;
  THIRD
  ret;
}
"""
WAIT = "griddepcontrol.wait;"


def copy(where: str, awaited: str) -> np.ndarray:
    arrays = {"x": np.array([5], np.uint32), "out": np.zeros(1, np.uint32)}
    text = COPY
    for place in ("FIRST", "SECOND", "THIRD"):
        text = text.replace(place, WAIT if place == where else "griddepcontrol.launch_dependents;")
    launch(text, "k", grid=2, block=1, params=list(arrays.values()),
           awaited=[arrays[name] for name in awaited.split()])  # fmt: skip
    return arrays["out"]


@pytest.mark.parametrize(
    ("where", "awaited"), [("FIRST", "x out"), ("SECOND", "out"), ("THIRD", "")]
)
def test_arrays_may_be_used_behind_the_wait_and_others_before(where, awaited):
    assert copy(where, awaited).tolist() == [5]


TWO_WARPS = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
  .reg .b64 %x, %out, %to; .reg .b32 %v, %t; .reg .pred %first;
  ld.param.u64 %x, [x]; ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  setp.lt.u32 %first, %t, 32;
  @%first griddepcontrol.wait;
  BETWEEN
  ld.global.u32 %v, [%x];
  mad.wide.u32 %to, %t, 4, %out;
  st.global.u32 [%to], %v;
  ret;
}
"""


def copy_in_two_warps(between: str, seed: int, check: str = "full", writable: bool = True):
    x, out = np.array([5], np.uint32), np.zeros(64, np.uint32)
    x.flags.writeable = writable
    text = TWO_WARPS.replace("BETWEEN", between)
    launch(text, "k", grid=1, block=64, params=[x, out], awaited=[x, out], seed=seed, check=check)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_a_warp_that_meets_one_which_waited_may_use_the_arrays(seed):
    assert copy_in_two_warps("bar.sync 0;", seed).tolist() == [5] * 64


@pytest.mark.parametrize("between", ["", "bar.warp.sync -1;"])
@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_warp_is_refused_though_another_has_waited(between, writable, seed):
    with pytest.raises(Trap, match=r"griddepcontrol\.wait") as caught:
        copy_in_two_warps(between, seed, writable=writable)
    assert caught.value.category == "dependent-launch"


def test_without_race_checks_one_wait_is_enough_for_all():
    between = "bar.warp.sync -1;" * 64  # warp 0 waits meanwhile, whoever starts
    assert copy_in_two_warps(between, 1, check="fast").tolist() == [5] * 64


@pytest.mark.parametrize(
    ("where", "awaited", "access"),
    [("SECOND", "x out", "read"), ("THIRD", "out", "write"), ("", "x", "read")],
)
def test_an_access_before_the_wait_is_refused(where, awaited, access):
    with pytest.raises(Trap, match=r"before griddepcontrol\.wait") as caught:
        copy(where, awaited)
    assert caught.value.category == "dependent-launch"
    assert f"global {access} of parameter" in caught.value.message


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("griddepcontrol.launch_dependents;", True),
        ("griddepcontrol.launch_dependents; @%first griddepcontrol.wait;", False),
        ("", False),
    ],
)
def test_a_grid_that_starts_another_and_waits_for_none_is_told_of(text, warns):
    """Its dependents wait for it alone, and it may end before the grids that it depends on."""
    body = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{ .reg .b32 %t; .reg .pred %first; mov.u32 %t, %ctaid.x; setp.eq.u32 %first, %t, 0; BODY ret; }
"""
    arrays = [np.zeros(4, np.uint32)]
    text = body.replace("BODY", text)
    report = launch(text, "k", grid=2, block=32, params=arrays, awaited=arrays)
    assert [each.category for each in report.warnings] == ["dependent-launch"] * warns

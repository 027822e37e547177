"""vprintf and __assertfail (PTX Writer's Guide to Interoperability, "System Calls")."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

MODULE = """.version 8.8
.target sm_100a
.address_size 64
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 values);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line,
                           .param .b64 function, .param .b64 width);
.global .align 1 .b8 layout[40] = {LAYOUT};
.global .align 1 .b8 word[4] = {111, 107, 33, 0};
"""
PRINTING = """.visible .entry k(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .f64 %d;
  .local .align 8 .b8 values[32];
  .param .b64 p0; .param .b64 p1; .param .b32 answer;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; neg.s32 %r1, %r0;
  mov.u64 %rd1, values; cvta.local.u64 %rd2, %rd1;
  cvt.rn.f64.u32 %d, %r0; mov.u64 %rd3, word; mov.b64 %rd5, 0x123456789a;
  st.local.u32 [values], %r1; st.local.f64 [values+8], %d; st.local.u64 [values+16], %rd3;
  st.local.u64 [values+24], %rd5;
  mov.u64 %rd4, layout; st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
  call.uni (answer), vprintf, (p0, p1);
  ld.param.b32 %r2, [answer]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], %r2;
  ret; }"""
ASSERTING = """.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<4>; .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
  mov.u64 %rd1, word; mov.u64 %rd2, layout;
  st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2; st.param.b32 [p2], 41; st.param.b64 [p3], %rd1;
  st.param.b64 [p4], 1;
  call.uni __assertfail, (p0, p1, p2, p3, p4);
  ret; }"""


def module(layout: str, kernel: str) -> str:
    codes = ", ".join(str(code) for code in (*layout.encode(), 0))
    return MODULE.replace("LAYOUT", codes) + kernel


def test_what_each_lane_prints_is_in_the_report_and_values_are_counted():
    out = np.zeros(3, np.uint32)
    text = module("%d|%5.1f|%-4s|%llx|%%\n", PRINTING)
    report = launch(text, "k", grid=1, block=3, params=[out])
    assert report.printed == "".join(
        f"{-lane}|{float(lane):5.1f}|ok! |123456789a|%\n" for lane in range(3)
    )
    assert out.tolist() == [4, 4, 4]
    assert report.as_dict()["printed"] == report.printed


def test_a_format_without_conversions_reads_no_values():
    out = np.zeros(1, np.uint32)
    text = module("hello", PRINTING)
    assert launch(text, "k", grid=1, block=1, params=[out]).printed == "hello"
    assert out.tolist() == [0]


def test_a_failed_assertion_stops_the_launch_and_names_its_place():
    with pytest.raises(Trap) as caught:
        launch(module("file.py", ASSERTING), "k", grid=1, block=32, params=[np.zeros(1)])
    assert caught.value.category == "trap"
    assert caught.value.message == "file.py:41: ok!: assertion failed: ok!"


def test_a_wrong_number_of_arguments_is_refused_before_the_launch():
    text = module("x", ASSERTING).replace("(p0, p1, p2, p3, p4)", "(p0, p1)")
    with pytest.raises(Trap, match="__assertfail takes 5 arguments, got 2"):
        launch(text, "k", grid=1, block=32, params=[np.zeros(1)])

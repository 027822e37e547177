"""Calls through registers, tables of functions, aliases (PTX ISA §9.7.12.5, §11.1.4, §11.2)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

FUNCTIONS = """
.func (.param .b32 r) plus(.param .b32 x, .param .b32 y)
{ .reg .b32 %a<4>; ld.param.b32 %a0, [x]; ld.param.b32 %a1, [y]; add.u32 %a2, %a0, %a1;
  st.param.b32 [r], %a2; ret; }
.func (.param .b32 r) times(.param .b32 x, .param .b32 y)
{ .reg .b32 %a<4>; .reg .pred %p; ld.param.b32 %a0, [x]; ld.param.b32 %a1, [y];
  mul.lo.u32 %a2, %a0, %a1; setp.lt.u32 %p, %a0, 8; @%p bra OUT; add.u32 %a2, %a2, 1000;
  OUT: st.param.b32 [r], %a2; ret; }
.func (.param .b32 r) less(.param .b32 x, .param .b32 y)
{ .reg .b32 %a<4>; ld.param.b32 %a0, [x]; ld.param.b32 %a1, [y]; sub.u32 %a2, %a0, %a1;
  st.param.b32 [r], %a2; ret; }
"""
CALL = """{ .param .b32 p0; .param .b32 p1; .param .b32 q0;
  st.param.b32 [p0], %r0; st.param.b32 [p1], 3;
  P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
  call (q0), %rd1, (p0, p1), P; ld.param.b32 %r1, [q0]; }"""


def run(body: str, functions: str = FUNCTIONS, data: str = "") -> np.ndarray:
    """%r1 of the 32 lanes after `body`; %r0 is the lane."""
    text = f""".version 8.8
.target sm_90a
.address_size 64
{functions}{data}
.visible .entry k(.param .u64 out) {{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
  {body}
  st.global.u32 [%rd0], %r1; ret; }}"""
    out = np.full(32, 0xBAD, np.uint32)
    launch(text, "k", grid=1, block=32, params=[out])
    return out


def test_a_function_is_called_by_its_address():
    assert run("mov.u64 %rd1, plus;" + CALL).tolist() == [lane + 3 for lane in range(32)]


def test_lanes_call_different_functions_of_a_table():
    table = ".global .align 8 .u64 table[3] = {less, times, plus};"
    out = run(
        """rem.u32 %r2, %r0, 3; mov.u64 %rd2, table; mad.wide.u32 %rd2, %r2, 8, %rd2;
        ld.global.u64 %rd1, [%rd2];"""
        + CALL
        + "activemask.b32 %r3; setp.ne.u32 %p1, %r3, -1; @%p1 trap;",
        data=table,
    )
    times = [3 * x + (1000 if x >= 8 else 0) for x in range(32)]
    wanted = [(lane - 3, times[lane], lane + 3)[lane % 3] & 0xFFFFFFFF for lane in range(32)]
    assert out.tolist() == wanted


def test_some_lanes_call_and_the_others_go_on():
    body = """mov.u32 %r1, 77; mov.u64 %rd1, plus; mov.u64 %rd2, less; setp.gt.u32 %p0, %r0, 20;
      selp.b64 %rd1, %rd1, %rd2, %p0; setp.lt.u32 %p1, %r0, 10;"""
    call = CALL.replace("call (q0)", "@!%p1 call (q0)").replace("ld.param.b32 %r1", "@!%p1 "
                                                                "ld.param.b32 %r1")  # fmt: skip
    wanted = [77 if x < 10 else x + 3 if x > 20 else x - 3 for x in range(32)]
    assert run(body + call).tolist() == wanted


def test_a_list_of_targets_names_the_functions():
    call = CALL.replace("P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);",
                        "P: .calltargets plus, times;")  # fmt: skip
    assert run("mov.u64 %rd1, times;" + call)[:8].tolist() == [3 * x for x in range(8)]


def test_an_alias_is_the_function():
    alias = ".func (.param .b32 r) add(.param .b32 x, .param .b32 y); .alias add, plus;"
    direct = CALL.replace("call (q0), %rd1, (p0, p1), P;", "call (q0), add, (p0, p1);")
    direct = direct.replace("P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);",
                            "")  # fmt: skip
    assert run(direct, FUNCTIONS + alias).tolist() == [lane + 3 for lane in range(32)]


def refusal(body: str, functions: str = FUNCTIONS) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, functions)
    return caught.value


def test_an_address_without_a_function_is_named():
    trap = refusal("mov.u64 %rd1, plus; add.u64 %rd1, %rd1, 4;" + CALL)
    assert trap.category == "out-of-bounds" and "where no function is" in trap.message


def test_arguments_must_fit_the_function():
    other = ".func f() { ret; }"
    trap = refusal("mov.u64 %rd1, f;" + CALL, FUNCTIONS + other)
    assert (trap.category, trap.message) == ("type", "f takes 0 arguments and gives 0 results")


def test_functions_may_not_be_read():
    trap = refusal("mov.u64 %rd1, plus; ld.global.u32 %r1, [%rd1];")
    assert trap.category == "out-of-bounds"


def test_recursion_through_another_function_is_refused():
    functions = """.func g(.param .b64 f);
    .func f(.param .b64 a) { .reg .b64 %a; .param .b64 p; ld.param.b64 %a, [a];
      st.param.b64 [p], %a; P: .callprototype _ (.param .b64 _); call %a, (p), P; ret; }
    .func g(.param .b64 a) { .reg .b64 %a; .param .b64 p; ld.param.b64 %a, [a];
      st.param.b64 [p], %a; call f, (p); ret; }"""
    body = """mov.u64 %rd1, g; { .param .b64 p; st.param.b64 [p], %rd1; call f, (p); }"""
    trap = refusal(body, functions)
    assert trap.category == "unmodelled" and "function f calls itself" in trap.message

"""Branches, divergence, calls and exits (PTX ISA §9.7.12)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
REGISTERS = """.reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0;
"""
STORE = "\nst.global.u32 [%rd1], %r1; ret; }\n"


def run(body: str, *, threads: int = 32, functions: str = "", **options) -> np.ndarray:
    out = np.full(threads, 0xBAD, np.uint32)
    text = HEADER + functions + ".visible .entry k(.param .u64 out) {" + REGISTERS + body + STORE
    launch(text, "k", grid=1, block=threads, params=[out], **options)
    return out


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_lanes_loop_different_numbers_of_times(seed):
    """PTX ISA §9.7.12.3 bra"""
    out = run(
        """add.u32 %r2, %r0, 1; mov.u32 %r1, 0;
      LOOP: setp.eq.u32 %p0, %r2, 1; @%p0 bra DONE;
        and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;
        mad.lo.u32 %r2, %r2, 3, 1; bra.uni NEXT;
      EVEN: shr.u32 %r2, %r2, 1;
      NEXT: add.u32 %r1, %r1, 1; bra LOOP;
      DONE:""",
        threads=96,
        seed=seed,
    )
    assert out.tolist() == [collatz(k + 1) for k in range(96)]


def test_structured_code_reconverges_at_the_join():
    """Nested conditionals: all 32 lanes reach the join together"""
    out = run("""mov.u32 %r1, 0; and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra ELSE;
        and.b32 %r3, %r0, 2; setp.eq.u32 %p1, %r3, 0; @%p1 bra INNER; add.u32 %r1, %r1, 5;
      INNER: add.u32 %r1, %r1, 1; bra JOIN;
      ELSE: add.u32 %r1, %r1, 3;
      JOIN: activemask.b32 %r4; xor.b32 %r4, %r4, 0xFFFFFFFF; add.u32 %r1, %r1, %r4;""")
    assert out.tolist() == [3 if k % 2 == 0 else 6 if k & 2 else 1 for k in range(32)]


@pytest.mark.parametrize("seed", [1])
def test_lanes_of_a_warp_pass_a_spin_lock(seed):
    """PTX ISA §3.1: a spinning lane does not starve the lane it waits for."""
    out = run(
        """.shared .b32 lock, count; mov.u32 %r9, 0; setp.eq.u32 %p0, %r0, 0;
        @%p0 st.shared.u32 [lock], 0; @%p0 st.shared.u32 [count], 0; bar.sync 0;
        and.b32 %r2, %r0, 3; setp.ne.u32 %p1, %r2, 0; @%p1 bra MEET;
      SPIN: atom.acquire.cta.shared.cas.b32 %r2, [lock], 0, 1;
        setp.ne.u32 %p1, %r2, 0; @%p1 bra SPIN;
        ld.shared.u32 %r3, [count]; add.u32 %r3, %r3, 1; st.shared.u32 [count], %r3;
        atom.release.cta.shared.exch.b32 %r4, [lock], 0;
      MEET: bar.sync 0; ld.shared.u32 %r1, [count];""",
        threads=40,
        seed=seed,
    )
    assert (out == 10).all()  # every fourth lane


@pytest.mark.parametrize("seed", range(3))
def test_a_lane_may_wait_for_another_lane_of_its_warp(seed):
    """The waiting lanes loop at the lower pc; lane 31 must still get its turn"""
    out = run(
        """.shared .b32 flag; setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [flag], 0;
        bar.sync 0; setp.eq.u32 %p1, %r0, 31; @%p1 bra SET;
      WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
        bra JOIN;
      SET: st.volatile.shared.u32 [flag], 77;
      JOIN: ld.shared.u32 %r1, [flag];""",
        seed=seed,
    )
    assert (out == 77).all()


def test_brx_jumps_by_index():
    """PTX ISA §9.7.12.4 brx.idx"""
    out = run("""and.b32 %r2, %r0, 3;
      TABLE: .branchtargets A, B, C, A;
      brx.idx %r2, TABLE;
      A: mov.u32 %r1, 10; bra JOIN; B: mov.u32 %r1, 20; bra JOIN; C: mov.u32 %r1, 30;
      JOIN: activemask.b32 %r5; setp.ne.u32 %p0, %r5, 0xFFFFFFFF; @%p0 trap;""")
    assert out.tolist() == [10, 20, 30, 10] * 8


def test_an_index_outside_the_table_traps():
    with pytest.raises(Trap) as caught:
        run("T: .branchtargets A, B; brx.idx %r0, T; A: mov.u32 %r1, 1; B: mov.u32 %r1, 2;")
    assert caught.value.message == "branch index must be below 2, got 31"


FIBONACCI = """
.func (.param .b32 result) step(.param .b32 x, .param .b32 y)
{ .reg .b32 %a<4>; ld.param.u32 %a0, [x]; ld.param.u32 %a1, [y]; add.u32 %a2, %a0, %a1;
  st.param.b32 [result], %a2; ret; }
.func (.reg .b32 doubled) twice(.reg .b32 value)
{ shl.b32 doubled, value, 1; ret; }
"""


def test_calls_pass_parameters_and_results_by_lane():
    """PTX ISA §9.7.12.5 call, §9.7.12.6 ret, §7.1 function parameters"""
    out = run(
        """mov.u32 %r1, 0; mov.u32 %r2, 1; and.b32 %r3, %r0, 15;
      LOOP: setp.eq.u32 %p0, %r3, 0; @%p0 bra DONE;
      { .param .b32 p0; .param .b32 p1; .param .b32 ret0;
        st.param.b32 [p0], %r1; st.param.b32 [p1], %r2;
        call.uni (ret0), step, (p0, p1); ld.param.b32 %r4, [ret0]; }
      mov.u32 %r1, %r2; mov.u32 %r2, %r4; sub.u32 %r3, %r3, 1; bra LOOP;
      DONE: setp.lt.u32 %p1, %r0, 5; @%p1 call (%r1), twice, (%r1);""",
        functions=FIBONACCI,
    )
    series = [0, 1]
    while len(series) < 16:
        series.append(series[-1] + series[-2])
    assert out.tolist() == [series[k % 16] * (2 if k < 5 else 1) for k in range(32)]


def test_structures_are_passed_by_value():
    """PTX ISA §7.1: .param .align N .b8 arrays"""
    functions = """.func (.param .align 8 .b8 out[16]) swap(.param .align 8 .b8 in[16])
      { .reg .b64 %a, %b; ld.param.v2.b64 {%a, %b}, [in]; st.param.v2.b64 [out], {%b, %a}; ret; }"""
    out = run(
        """{ .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16];
      cvt.u64.u32 %rd2, %r0; st.param.b64 [p], %rd2; st.param.b64 [p+8], 1000;
      call (q), swap, (p); ld.param.b64 %rd3, [q]; ld.param.b64 %rd4, [q+8]; }
      add.u64 %rd5, %rd3, %rd4; cvt.u32.u64 %r1, %rd5; cvt.u32.u64 %r2, %rd3;
      setp.ne.u32 %p0, %r2, 1000; @%p0 trap;""",
        functions=functions,
    )
    assert out.tolist() == [1000 + k for k in range(32)]


def test_a_function_may_return_early_for_some_lanes():
    functions = """.func (.reg .b32 r) f(.reg .b32 x) { .reg .pred %p; mov.u32 r, 1;
      setp.lt.u32 %p, x, 9; @%p ret; mov.u32 r, 2; ret; }"""
    out = run(
        """call (%r1), f, (%r0); activemask.b32 %r2; setp.ne.u32 %p0, %r2, 0xFFFFFFFF;
                 @%p0 trap;""",
        functions=functions,
    )
    assert out.tolist() == [1] * 9 + [2] * 23


@pytest.mark.parametrize(
    "functions, body, reason",
    [
        (".func f() { call f, (); ret; }", "call f, ();", "recursion is not modelled"),
        (".extern .func f();", "call f, ();", "a call of f, which has no body in this module"),
        (
            ".func f() { .reg .b64 %a; mov.u64 %a, f;"
            " P: .callprototype _ (); call %a, (), P; ret; }",
            "call f, ();",
            "function f calls itself, recursion is not modelled",
        ),
    ],
)
def test_calls_that_are_not_modelled_say_why(functions, body, reason):
    with pytest.raises(Trap, match=reason) as caught:
        run(body, functions=functions)
    assert caught.value.category == "unmodelled"


def test_lanes_exit_one_by_one():
    """PTX ISA §9.7.12.7 exit"""
    out = run("""setp.gt.u32 %p0, %r0, 20; @%p0 exit; setp.eq.u32 %p1, %r0, 3; @%p1 ret;
                 activemask.b32 %r1;""")
    alive = (1 << 21) - 1 & ~8
    assert out.tolist() == [0xBAD if k > 20 or k == 3 else alive for k in range(32)]


def test_the_end_of_the_body_is_a_return():
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out) { .reg .b64 %a; ld.param.u64 %a, [out];
      st.global.u32 [%a], 5; }"""
    )
    out = np.zeros(1, np.uint32)
    launch(text, "k", grid=1, block=32, params=[out])
    assert out[0] == 5


def test_trap_stops_the_launch():
    """PTX ISA §9.7.19.4 trap"""
    with pytest.raises(Trap) as caught:
        run("setp.eq.u32 %p0, %r0, 9; @%p0 trap;")
    assert caught.value.category == "trap"


def test_names_are_local_to_their_block():
    """PTX ISA §5.4, §4.5.1: nested scopes shadow"""
    out = run("""mov.u32 %r1, 1; { .reg .b32 %r1; mov.u32 %r1, 50; bra L; trap;
        L: add.u32 %r2, %r1, 0; }
      { .reg .b32 t; bra L; trap; L: add.u32 t, %r1, %r2; mov.u32 %r1, t; }""")
    assert (out == 51).all()


def test_a_guarded_instruction_leaves_the_other_lanes_alone():
    out = run("""mov.u32 %r1, 5; setp.lt.u32 %p0, %r0, 3; @%p0 mov.u32 %r1, 6;
                 @!%p0 add.u32 %r1, %r1, 2;""")
    assert out.tolist() == [6] * 3 + [7] * 29


def test_an_endless_loop_ends_at_max_steps():
    with pytest.raises(Trap) as caught:
        run("L: bra L;", max_steps=1000)
    assert caught.value.category == "step-limit"


def test_runs_are_repeatable_by_seed():
    body = """.shared .b32 turn; setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [turn], 0;
              bar.sync 0; atom.shared.add.u32 %r1, [turn], 1;"""
    orders = [run(body, threads=256, seed=seed).tolist() for seed in range(6)]
    again = [run(body, threads=256, seed=seed).tolist() for seed in range(6)]
    assert orders == again
    assert len({tuple(order) for order in orders}) > 1

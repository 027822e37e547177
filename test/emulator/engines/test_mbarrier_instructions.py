"""mbarrier.* in small kernels (PTX ISA, "mbarrier" instructions)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
DECLARATIONS = """
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<8>;
  .shared .align 8 .b8 bars[64];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bars;
  setp.eq.u32 %p0, %r0, 0;
"""
WAIT = """
{label}:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], {parity};
  @!%p7 bra {label};
"""
STORE_RESULT = """
  mul.wide.u32 %rd7, %r0, 4;
  add.s64 %rd7, %rd0, %rd7;
  st.global.u32 [%rd7], %r15;
  ret;
}
"""


def run(body: str, threads: int = 32, seed: int = 0) -> np.ndarray:
    out = np.full(threads, 0xDEAD, np.uint32)
    text = HEADER + DECLARATIONS + body + STORE_RESULT
    launch(text, "k", grid=1, block=threads, params=[out], seed=seed)
    return out


def trapped(body: str, threads: int = 32, seed: int = 0) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, threads, seed)
    return caught.value


INIT = "  @%p0 mbarrier.init.shared::cta.b64 [%r1], {count};\n  bar.sync 0;\n"


@pytest.mark.parametrize("seed", range(4))
def test_every_thread_of_two_warps_passes_after_all_have_arrived(seed):
    body = (
        INIT.format(count=64)
        + """
      mbarrier.arrive.shared::cta.b64 _, [%r1];
    """
        + WAIT.format(label="W", parity=0)
        + "mov.u32 %r15, 7;"
    )
    assert (run(body, 64, seed) == 7).all()


@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
def test_a_state_token_is_waited_for_in_every_own_address_space(space):
    address = "%rd1" if not space else "%r1"
    body = f"""
      cvt.u64.u32 %rd2, %r1; cvta.shared.u64 %rd1, %rd2;
      @%p0 mbarrier.init{space}.b64 [{address}], 32;
      bar.sync 0;
      mbarrier.arrive.release.cta{space}.b64 %rd3, [{address}];
    W:
      mbarrier.test_wait.acquire.cta{space}.b64 %p7, [{address}], %rd3;
      @!%p7 bra W;
      mov.u32 %r15, 3;
    """
    assert (run(body) == 3).all()


def test_transactions_hold_a_phase_open_until_the_bytes_are_complete():
    body = (
        INIT.format(count=1)
        + """
      mov.u32 %r15, 0;
      @!%p0 bra DONE;
      mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], 48;
      mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 0;
      mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 32;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
      mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], 32;
      mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 0;
      selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; selp.u32 %r4, 4, 0, %p3;
      or.b32 %r15, %r2, %r3; or.b32 %r15, %r15, %r4;
    DONE:
    """
    )
    assert run(body)[0] == 4


def test_counts_drops_and_pending_counts():
    body = (
        INIT.format(count=5)
        + """
      mov.u32 %r15, 0;
      @!%p0 bra DONE;
      mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%r1], 2;
      mbarrier.pending_count.b64 %r2, %rd1;
      mbarrier.arrive_drop.shared::cta.b64 %rd2, [%r1];
      mbarrier.pending_count.b64 %r3, %rd2;
      mbarrier.arrive.shared::cta.b64 %rd3, [%r1], 2;
      mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd3;
      mbarrier.arrive.shared::cta.b64 %rd4, [%r1], 1;
      mbarrier.pending_count.b64 %r4, %rd4;
      selp.u32 %r5, 1000, 0, %p1;
      mad.lo.u32 %r15, %r2, 100, %r5;
      mad.lo.u32 %r15, %r3, 10, %r15;
      add.u32 %r15, %r15, %r4;
    DONE:
    """
    )
    assert run(body)[0] == 1000 + 100 * 5 + 10 * 3 + 4


@pytest.mark.parametrize("seed", range(3))
def test_a_ring_of_one_slot_passes_values_in_order(seed):
    body = """
      .shared .align 4 .b32 slot;
      @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
      @%p0 mbarrier.init.shared::cta.b64 [%r1+8], 1;
      bar.sync 0;
      mov.u32 %r15, 0;
      mov.u32 %r5, 0;
      setp.eq.u32 %p1, %r0, 32;
      @%p1 bra CONSUMER;
      @!%p0 bra DONE;
    PRODUCER:
      and.b32 %r6, %r5, 1; xor.b32 %r6, %r6, 1;
    PW:
      mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1+8], %r6;
      @!%p7 bra PW;
      mad.lo.u32 %r7, %r5, 10, 3;
      st.shared.u32 [slot], %r7;
      mbarrier.arrive.shared::cta.b64 _, [%r1];
      add.u32 %r5, %r5, 1;
      setp.lt.u32 %p2, %r5, 5;
      @%p2 bra PRODUCER;
      bra DONE;
    CONSUMER:
      and.b32 %r6, %r5, 1;
    CW:
      mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], %r6, 1000;
      @!%p7 bra CW;
      ld.shared.u32 %r7, [slot];
      mad.lo.u32 %r15, %r15, 100, %r7;
      mbarrier.arrive.shared::cta.b64 _, [%r1+8];
      add.u32 %r5, %r5, 1;
      setp.lt.u32 %p2, %r5, 4;
      @%p2 bra CONSUMER;
    DONE:
    """
    assert run(body, 64, seed)[32] == 3_13_23_33


def test_an_invalidated_object_may_be_made_anew():
    body = """
      @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
      @%p0 mbarrier.inval.shared::cta.b64 [%r1];
      @%p0 mbarrier.init.shared::cta.b64 [%r1], 2;
      mov.u32 %r15, 1;
    """
    assert run(body)[0] == 1


PENDING_ONE = "(phase 0, parity 0, pending 1 of 1, tx 0)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];",
            "no mbarrier object at shared offset 0x400 of cta (0, 0, 0); mbarrier.init has not "
            "been executed there",
        ),
        (
            "add.u32 %r9, %r0, 1; mbarrier.init.shared::cta.b64 [%r1], %r9;",
            f"mbarrier.init of the live mbarrier 0x400 {PENDING_ONE}; mbarrier.inval it first",
        ),
        (
            "mov.b32 %r9, 0; @%p0 mbarrier.init.shared::cta.b64 [%r1], %r9;",
            "arrival count of mbarrier.init must be 1..1048575, got 0",
        ),
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n"
            "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1], 2;",
            f"arrival of 2 exceeds the pending count of mbarrier 0x400 {PENDING_ONE}",
        ),
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n@%p0 ld.shared.u32 %r2, [%r1+4];",
            "read of 4 bytes at shared offset 0x404 touches a live mbarrier object; only mbarrier "
            "operations may, until mbarrier.inval",
        ),
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n@%p0 st.shared.u64 [%r1], %rd0;",
            "write of 8 bytes at shared offset 0x400 touches a live mbarrier object; only mbarrier "
            "operations may, until mbarrier.inval",
        ),
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n"
            "@%p0 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 64;\n"
            "mov.u32 %r15, 0;",
            "the CTA exits while the transactions of mbarrier 0x400 (phase 0, parity 0, pending 1 "
            "of 1, tx -64) do not balance",
        ),
    ],
)
def test_broken_barrier_rules_trap(body, message):
    trap = trapped(body)
    assert (trap.category, trap.message) == ("barrier-protocol", message)
    assert trap.line is not None and trap.kernel == "k"


@pytest.mark.parametrize("count", [1, 32])
def test_lanes_that_initialise_a_barrier_alike_are_told_of(count):
    """The producers of ThunderKittens do so with all lanes of a warp"""
    body = f"mbarrier.init.shared::cta.b64 [%r1], {count}; mov.u32 %r15, 7;"
    text = HEADER + DECLARATIONS + body + STORE_RESULT
    report = launch(text, "k", grid=1, block=32, params=[np.zeros(32, np.uint32)])
    (warning,) = report.warnings
    assert warning.category == "repeated-init" and "same count" in warning.message


def test_bytes_that_are_expected_and_never_come_are_told_of():
    """Producers that wait for a slot at their end expect the bytes of one more copy, as those of
    FlashAttention 4: nobody waits for that phase."""
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n"
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64; mov.u32 %r15, 7;"
    )
    text = HEADER + DECLARATIONS + body + STORE_RESULT
    report = launch(text, "k", grid=1, block=32, params=[np.zeros(32, np.uint32)])
    assert [warning.category for warning in report.warnings] == ["open-bytes"]


WARPS_INIT = (
    "and.b32 %r13, %r0, 31; setp.eq.u32 %p0, %r13, 0; add.u32 %r14, %r0, 96;"
    " @%p0 mbarrier.init.shared::cta.b64 [%r1], {}; bar.sync 0;"
    " mbarrier.arrive.shared::cta.b64 _, [%r1]; {} mov.u32 %r15, 7;"
)


@pytest.mark.parametrize("seed", range(4))
def test_warps_that_initialise_a_barrier_alike_are_told_of(seed):
    """A tutorial of the CuTe DSL lets the elected lane of each warp do so"""
    text = HEADER + DECLARATIONS + WARPS_INIT.format(96, "") + STORE_RESULT
    report = launch(text, "k", grid=1, block=96, params=[np.zeros(96, np.uint32)], seed=seed)
    assert {warning.category for warning in report.warnings} == {"repeated-init"}


@pytest.mark.parametrize(
    ("count", "later"), [("%r14", ""), (96, "@%p0 mbarrier.init.shared::cta.b64 [%r1], 96;")]
)
def test_warps_may_initialise_it_neither_otherwise_nor_after_a_signal(count, later):
    body = WARPS_INIT.format(count, later)
    assert "of the live mbarrier" in trapped(body, threads=96).message


@pytest.mark.parametrize("seed", range(8))
def test_who_uses_it_must_come_after_every_warp_that_initialises_it(seed):
    """Whichever of them is the last: another order of warps would make it anew behind a signal."""
    body = (
        "and.b32 %r13, %r0, 31; setp.eq.u32 %p0, %r13, 0; setp.eq.u32 %p1, %r0, 0;"
        " @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;"
        " @%p1 mbarrier.arrive.shared::cta.b64 _, [%r1]; mov.u32 %r15, 7;"
    )
    trap = trapped(body, threads=64, seed=seed)
    assert trap.category == "missing-fence" or "of the live" in trap.message


def test_a_second_instruction_may_not_initialise_a_barrier_alike():
    body = "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;"
    assert "of the live mbarrier" in trapped(body + body).message


def test_a_misaligned_barrier_traps():
    trap = trapped("@%p0 mbarrier.init.shared::cta.b64 [%r1+4], 1;")
    assert trap.category == "misaligned"
    assert trap.message == "mbarrier.init: shared address 0x404 must be a multiple of 8"


def test_a_wait_that_cannot_end_is_reported_with_the_barrier():
    body = (
        INIT.format(count=2)
        + """
      @%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];
    """
        + WAIT.format(label="W", parity=0)
    )
    trap = trapped(body)
    assert trap.category == "deadlock"
    assert (
        "waits for parity 0 of mbarrier 0x400 (phase 0, parity 0, pending 1 of 2, tx 0)"
        in trap.message
    )


def test_a_remote_form_needs_the_sink():
    trap = trapped("mbarrier.arrive.release.cluster.shared::cluster.b64 %rd1, [%r1];")
    assert trap.category == "unmodelled"
    assert trap.message.startswith("a result other than _ of an arrival on .shared::cluster")


def test_an_unknown_modifier_is_refused():
    assert trapped("mbarrier.init.shared::cta.foo.b64 [%r1], 1;").category == "unmodelled"


def test_waits_are_counted():
    out = np.zeros(32, np.uint32)
    body = (
        INIT.format(count=1)
        + """
      @%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];
      mov.u32 %r15, 0;
    """
        + WAIT.format(label="W", parity=0)
    )
    report = launch(HEADER + DECLARATIONS + body + STORE_RESULT, "k", grid=1, block=32,
                    params=[out])  # fmt: skip
    assert report.waits == 1 and report.waits_suspended == 0


@pytest.mark.parametrize(("parity", "meant"), [(-1, 1), (-2, 0), (2, 0), (3, 1), (0x80000001, 1)])
@pytest.mark.parametrize("how", ["try_wait", "test_wait"])
def test_a_parity_that_is_neither_0_nor_1_counts_by_bit_0_and_is_noted(parity, meant, how):
    """Triton waits with -1 for the phase before the first one"""
    arrival = "mbarrier.arrive.shared::cta.b64 _, [%r1];" if meant == 0 else ""
    wait = f"W: mbarrier.{how}.parity.shared::cta.b64 %p7, [%r1], %r2; @!%p7 bra W;"
    body = f"{INIT.format(count=32)} {arrival} mov.u32 %r2, {parity}; {wait} mov.u32 %r15, 9;"
    out = np.zeros(32, np.uint32)
    text = HEADER + DECLARATIONS + body + STORE_RESULT
    report = launch(text, "k", grid=1, block=32, params=[out], max_steps=500)
    assert (out == 9).all()
    line = next(n for n, each in enumerate(text.splitlines(), 1) if how in each)
    (warning,) = report.warnings
    shown = parity - (1 << 32) if parity >> 31 == 1 else parity
    assert str(warning).startswith(f"parity: ptx:{line}: a wait asks for phase parity {shown}, ")


def test_a_parity_that_inactive_lanes_hold_is_not_asked_for():
    body = (
        INIT.format(count=1)
        + """
      mov.u32 %r2, 5; @%p0 mov.u32 %r2, 0;
      @!%p0 bra AWAY;
      mbarrier.arrive.shared::cta.b64 _, [%r1];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], %r2; @!%p7 bra W;
    AWAY: mov.u32 %r15, 9;
    """
    )
    out = np.zeros(32, np.uint32)
    report = launch(
        HEADER + DECLARATIONS + body + STORE_RESULT, "k", grid=1, block=32, params=[out]
    )
    assert not report.warnings

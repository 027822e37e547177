"""Named barriers, cluster barriers, deadlock reports (PTX ISA §9.7.13.1–§9.7.13.3)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Deadlock, Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
REGISTERS = """.reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r18, %ctaid.x; mov.u32 %r19, %ntid.x;
  mad.lo.u32 %r17, %r18, %r19, %r0; mad.wide.u32 %rd1, %r17, 4, %rd0;
  .shared .align 4 .b8 s[4096]; mov.u32 %r16, s; shl.b32 %r15, %r0, 2; add.u32 %r15, %r15, %r16;
"""


def run(body: str, threads: int, *, ctas: int = 1, **options) -> np.ndarray:
    out = np.full(threads * ctas, 0xBAD, np.uint32)
    text = (
        HEADER
        + ".visible .entry k(.param .u64 out) {"
        + REGISTERS
        + body
        + "\nst.global.u32 [%rd1], %r1; ret; }\n"
    )
    launch(text, "k", grid=ctas, block=threads, params=[out], **options)
    return out


def trapped(body: str, threads: int, **options) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, threads, **options)
    return caught.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threads", [32, 96, 256, 100])
@pytest.mark.parametrize(
    "text", ["bar.sync 0;", "barrier.sync 0;", "barrier.cta.sync.aligned 3;", "bar.cta.sync 15;"]
)
def test_a_barrier_orders_writes_before_reads(text, threads, seed):
    out = run(
        f"""st.shared.u32 [%r15], %r0; {text} sub.u32 %r2, {threads - 1}, %r0;
                  shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r16; ld.shared.u32 %r1, [%r2];""",
        threads,
        seed=seed,
    )
    assert out.tolist() == list(range(threads))[::-1]


@pytest.mark.parametrize("seed", range(4))
def test_producers_arrive_and_consumers_wait(seed):
    """PTX ISA §9.7.13.1: bar.arrive counts with bar.sync"""
    out = run(
        """mov.u32 %r1, 0; setp.lt.u32 %p0, %r0, 64; @!%p0 bra CONSUME;
        st.shared.u32 [%r15], %r0; bar.arrive 1, 128; bra DONE;
      CONSUME: bar.sync 1, 128; ld.shared.u32 %r1, [%r15+-256];
      DONE:""",
        128,
        seed=seed,
    )
    assert out.tolist() == [0] * 64 + list(range(64))


@pytest.mark.parametrize("aligned", ["", ".aligned"])
def test_barrier_reductions(aligned):
    """PTX ISA §9.7.13.1 barrier.red"""
    out = run(
        f"""and.b32 %r2, %r0, 3; setp.eq.u32 %p0, %r2, 1;
      barrier.cta.red.popc{aligned}.u32 %r1, 0, %p0; setp.lt.u32 %p1, %r0, 200;
      barrier.red.and{aligned}.pred %p2, 1, %p1; barrier.red.or{aligned}.pred %p3, 1, 96, !%p1;
      @!%p2 trap; @%p3 trap;""",
        96,
    )
    assert (out == 24).all()


@pytest.mark.parametrize("other", ["bar.sync 1, 64;", "bar.arrive 1, 64;"])
@pytest.mark.parametrize("seed", range(3))
def test_a_reduction_does_not_go_with_other_arrivals_in_a_phase(other, seed):
    """PTX ISA §9.7.13.1: barrier.red is not to be mixed with barrier.sync or barrier.arrive"""
    trap = trapped(
        f"""setp.lt.u32 %p0, %r0, 32; @%p0 bra A; {other} bra J;
                 A: bar.red.popc.u32 %r1, 1, 64, %p0; J:""",
        64,
        seed=seed,
    )
    assert trap.category == "protocol" and ".red does not go together with" in trap.message


@pytest.mark.parametrize("seed", range(8))
def test_a_reduction_is_read_behind_the_next_phase(seed):
    """Warps 0 and 1 reduce; warp 0 hands the barrier over to warps 2 and 3, which reduce other
    flags, while warp 1 may still be on its way"""
    out = run(
        """.shared .align 8 .b64 turn; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 64;
      setp.lt.u32 %p2, %r0, 32; @%p0 mbarrier.init.shared::cta.b64 [turn], 32; bar.sync 0;
      @!%p1 bra W; bar.red.popc.u32 %r1, 1, 64, %p2; @!%p2 bra END;
      mbarrier.arrive.shared::cta.b64 _, [turn]; bra END;
      W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [turn], 0; @!%p3 bra W;
      bar.red.popc.u32 %r1, 1, 64, %p2; END:""",
        128,
        seed=seed,
    )
    assert out.tolist() == [32] * 64 + [0] * 64


def test_exited_threads_are_not_waited_for():
    out = run("setp.lt.u32 %p0, %r0, 32; @%p0 exit; bar.sync 0; mov.u32 %r1, 1;", 96)
    assert out.tolist() == [0xBAD] * 32 + [1] * 64


def test_divergent_lanes_reconverge_before_an_aligned_barrier():
    out = run(
        """setp.eq.u32 %p0, %r0, 7; mov.u32 %r1, 1; @!%p0 bra J; mov.u32 %r1, 2;
                 J: bar.sync 0;""",
        64,
    )
    assert out[7] == 2 and out.sum() == 65


def test_a_non_aligned_barrier_may_be_reached_from_two_places():
    out = run(
        """setp.lt.u32 %p0, %r0, 16; @%p0 bra A; barrier.sync 0; mov.u32 %r1, 1; bra J;
                 A: barrier.sync 0; mov.u32 %r1, 2; J:""",
        32,
    )
    assert out.tolist() == [2] * 16 + [1] * 16


def test_an_aligned_barrier_in_divergent_code_is_reported():
    trap = trapped(
        """setp.lt.u32 %p0, %r0, 16; @%p0 bra A; bar.sync 0; mov.u32 %r1, 1; bra J;
                      A: bar.sync 0; mov.u32 %r1, 2; J:""",
        32,
    )
    assert trap.category == "convergence"
    assert "all live lanes of the warp must execute this .aligned instruction" in trap.message


@pytest.mark.parametrize(
    "body, message",
    [
        ("bar.sync 16;", "the barrier number must be 0..15, got 16"),
        (
            "bar.sync 1, 40;",
            "barrier 1: the thread count must be a positive multiple of 32, got 40",
        ),
        ("bar.sync 1, %r0;", "the thread count must be the same in all lanes, got [0, 1, 2, 3]"),
    ],
)
def test_bad_barrier_operands(body, message):
    assert trapped(body, 32).message == message


def test_participants_must_agree_on_the_thread_count():
    trap = trapped("""setp.lt.u32 %p0, %r0, 32; selp.u32 %r2, 64, 96, %p0; bar.sync 1, %r2;""", 96)
    assert "must state the same thread count" in trap.message


def test_a_barrier_that_never_completes_reports_who_waits():
    trap = trapped("mov.u32 %r1, 0; setp.lt.u32 %p0, %r0, 32; @%p0 bra J; bar.sync 2, 128; J:", 96)
    assert isinstance(trap, Deadlock)
    lines = [line.strip() for line in trap.message.splitlines()[1:]]
    assert lines == [
        "cta (0,0,0) warp 1 lanes 0-31 at ptx:8 `bar.sync 2, 128`:"
        " barrier 2 with 64 of 128 threads arrived",
        "cta (0,0,0) warp 2 lanes 0-31 at ptx:8 `bar.sync 2, 128`:"
        " barrier 2 with 64 of 128 threads arrived",
        "no asynchronous operation is outstanding",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_barrier_orders_accesses_to_a_peer(seed):
    """PTX ISA §9.7.13.3 barrier.cluster, §9.7.9.23 mapa, §5.1.7 .shared::cluster"""
    out = run(
        """mad.lo.u32 %r2, %r18, 1000, %r0; st.shared.u32 [%r15], %r2;
      barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1; mapa.shared::cluster.u32 %r5, %r15, %r4;
      ld.shared::cluster.u32 %r1, [%r5]; getctarank.shared::cluster.u32 %r6, %r5;
      setp.ne.u32 %p0, %r6, %r4; @%p0 trap;
      barrier.cluster.arrive; barrier.cluster.wait;""",
        64,
        ctas=4,
        cluster=2,
        seed=seed,
    )
    wanted = [(cta ^ 1) * 1000 + t for cta in range(4) for t in range(64)]
    assert out.tolist() == wanted


def test_a_cluster_wait_without_arrive_is_an_error():
    assert trapped("barrier.cluster.wait;", 32).category == "protocol"


def test_the_address_of_a_rank_that_does_not_exist_may_be_made_and_not_used():
    make = "mov.u32 %r1, 0; mov.u32 %r15, 0; mapa.shared::cluster.u32 %r5, %r15, {rank};"
    run(make.format(rank=2), 32, ctas=2, cluster=2)
    for rank in (2, 300, -1):
        use = make.format(rank=rank) + "st.shared::cluster.u32 [%r5], %r5;"
        assert trapped(use, 32, ctas=2, cluster=2).category == "out-of-bounds"

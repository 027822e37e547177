"""Races are found in every order of events, and ordered accesses are never called races.

Each row is a kernel body with one piece in angle brackets: with it the kernel is right, without it
the access named in the message races. PTX ISA §8 (memory consistency model).
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import LaunchError, Trap, launch

SEEDS = range(6)
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 flags)
{ .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<8>;
  .shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar; .shared .align 8 .b64 other;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [flags];
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, other; shl.b32 %r5, %r0, 2; add.u32 %r6, %r2, %r5;
  setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.eq.u32 %p2, %r3, 0;
  mad.lo.u32 %r7, %r3, 256, %r5; cvt.u64.u32 %rd2, %r7; add.s64 %rd2, %rd0, %rd2;
  st.shared.u32 [%r6], 99; fence.proxy.async; bar.sync 0;
"""
FIRST = HEADER.count("\n") + 1
WAIT = """{name}: mbarrier.try_wait.{sem}.cta.parity.shared::cta.b64 %p4, [%r1], {parity};
  @!%p4 bra {name};"""
ACQUIRING = WAIT.format(name="W", sem="acquire", parity=0)
RELAXED = WAIT.format(name="W", sem="relaxed", parity=0)
INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r1], {count}; <bar.sync 0;>"
READY = "@%p0 mbarrier.init.shared::cta.b64 [%r1], 32; bar.sync 0;"
ARRIVE = "@%p1 mbarrier.arrive.{sem}.cta.shared::cta.b64 _, [%r1];"
CLUSTER = "barrier.cluster.arrive.{sem}.aligned; barrier.cluster.wait.acquire.aligned;"
WHOLE = CLUSTER.format(sem="release")
PEER = "xor.b32 %r8, %r3, 1; mapa.shared::cluster.u32 %r9, %r2, %r8;"
REMOTE = "mapa.shared::cluster.u32 %r10, %r1, %r8;"
BULK = """@%p0 mbarrier.init.shared::cta.b64 [%r1], 1; bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r1];"""
SPIN = """S: ld.{order}.gpu.global.u32 %r8, [%rd1+252]; setp.eq.u32 %p3, %r8, 0; @%p3 bra S;"""
HAND_OVER = """@!%p2 bra READER; st.global.u32 [%rd0], 7; {release} bra END;
  READER: {acquire} ld.global.u32 %r9, [%rd0]; st.global.u32 [%rd0+512], %r9; END:"""

ROWS = {
    "a barrier between a write and another warp's read": (
        "@%p1 st.shared.u32 [%r6], %r0; <bar.sync 0;> ld.shared.u32 %r8, [%r2];",
        "race",
    ),
    "a barrier between a read and another warp's write": (
        "@%p0 st.shared.u32 [%r2], 1; bar.sync 0; @%p1 ld.shared.u32 %r8, [%r2]; <bar.sync 0;>"
        "@!%p1 st.shared.u32 [%r2], 3;",
        "race",
    ),
    "a barrier between different writes of two warps": (
        "@%p1 st.shared.u32 [%r2], 1; <bar.sync 0;> @!%p1 st.shared.u32 [%r2], 2;",
        "race",
    ),
    "bar.arrive of the writer": (
        "@!%p1 bra CONSUMER; st.shared.u32 [%r6], 1; <bar.sync 0, 64; bra END;> bar.arrive 1, 64;"
        "bar.sync 0, 64; bra END; CONSUMER: <bar.sync 0, 64; bra READ;> bar.sync 1, 64;"
        "bar.sync 0, 64; READ: ld.shared.u32 %r8, [%r2]; END:",
        None,
    ),
    "bar.warp.sync between lanes of a warp": (
        "@%p1 st.shared.u32 [%r6], %r0; <bar.warp.sync 0xFFFFFFFF;> @%p1 ld.shared.u32 %r8, [%r2];",
        "race",
    ),
    "a barrier behind mbarrier.init": (INIT.format(count=64) + ARRIVE.format(sem="release"), None),
    "a release by the arrival": (
        READY + "@%p1 st.shared.u32 [%r6], %r0; @%p1 <mbarrier.arrive.release.cta.shared::cta.b64|"
        "mbarrier.arrive.relaxed.cta.shared::cta.b64> _, [%r1];"
        + ACQUIRING
        + "@!%p1 ld.shared.u32 %r8, [%r2];",
        "race",
    ),
    "a fence before a relaxed arrival": (
        READY
        + "@%p1 st.shared.u32 [%r6], %r0; <fence.acq_rel.cta;>"
        + ARRIVE.format(sem="relaxed")
        + ACQUIRING
        + "@!%p1 ld.shared.u32 %r8, [%r2];",
        "race",
    ),
    "a fence behind a relaxed wait": (
        READY
        + "@%p1 st.shared.u32 [%r6], %r0;"
        + ARRIVE.format(sem="release")
        + RELAXED
        + "<fence.acq_rel.cta;> @!%p1 ld.shared.u32 %r8, [%r2];",
        "race",
    ),
    "a wait for the mbarrier of a bulk copy": (
        BULK
        + f"<{ACQUIRING}> bar.sync 0; @%p0 st.shared.u32 [%r2], 9;"
        + ACQUIRING.replace("W", "END"),
        "race",
    ),
    "a wait for the readers before a bulk copy overwrites": (
        "@%p1 st.shared.u32 [%r6], 1; fence.proxy.async; bar.sync 0;"
        "@!%p1 ld.shared.u32 %r8, [%r2]; <bar.sync 0;>"
        + BULK.replace("bar.sync 0;", "bar.warp.sync -1;")
        # the copy is issued by warp 0 without knowing of warp 1's read
        + ACQUIRING.replace("W:", "@!%p1 bra END; W:")
        + "END:",
        "race",
    ),
    "a proxy fence between generic writes and a bulk store": (
        "@%p1 st.shared.u32 [%r6], 1; <fence.proxy.async;> bar.sync 0;"
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 128;"
        "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;",
        "proxy-fence",
    ),
    "a proxy fence on the way, here behind the barrier": (
        "@!%p1 st.shared.u32 [%r6], 1; bar.sync 0; <@%p0 fence.proxy.async;>"
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2+128], 128;"
        "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;",
        "proxy-fence",
    ),
    "cp.async.wait_group before the barrier": (
        "@%p1 cp.async.ca.shared.global [%r6], [%rd2], 4; cp.async.commit_group;"
        "<cp.async.wait_group 0;> bar.sync 0; ld.shared.u32 %r8, [%r2];",
        "race,uninitialised-read",
    ),
    "a release of the flag's writer": (
        HAND_OVER.format(
            release="<st.release.gpu.global.u32|st.relaxed.gpu.global.u32> [%rd1+252], 1;",
            acquire=SPIN.format(order="acquire"),
        ),
        "race",
    ),
    "an acquire of the flag's reader": (
        HAND_OVER.format(
            release="st.release.gpu.global.u32 [%rd1+252], 1;",
            acquire=SPIN.format(order="<acquire|relaxed>"),
        ),
        "race",
    ),
    "fences around a relaxed flag": (
        HAND_OVER.format(
            release="<fence.acq_rel.gpu;> st.relaxed.gpu.global.u32 [%rd1+252], 1;",
            acquire=SPIN.format(order="relaxed") + "fence.acq_rel.gpu;",
        ),
        "race",
    ),
    "an atomic as the flag": (
        HAND_OVER.format(
            release="bar.sync 0; membar.gl; atom.global.add.u32 %r10, [%rd1+252], <1|1> ;",
            acquire=SPIN.format(order="<acquire|relaxed>"),
        ),
        "race",
    ),
    "different results of two CTAs at different places": (
        "<st.global.u32 [%rd2], %r3;|st.global.u32 [%rd0], %r3;>",
        "race",
    ),
}
CLUSTER_ROWS = {
    "a cluster barrier behind a write to a peer": (
        WHOLE + PEER + "add.u32 %r9, %r9, %r5; st.shared::cluster.u32 [%r9], %r3; <" + WHOLE + ">"
        "ld.shared.u32 %r8, [%r6];" + WHOLE,
        "race",
    ),
    "a release by the cluster barrier": (
        WHOLE
        + PEER
        + "add.u32 %r9, %r9, %r5; st.shared::cluster.u32 [%r9], %r3; <"
        + WHOLE
        + "|"
        + CLUSTER.format(sem="relaxed")
        + "> ld.shared.u32 %r8, [%r6];"
        + WHOLE,
        "race",
    ),
    "fence.mbarrier_init before a relaxed cluster barrier": (
        "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1; <fence.mbarrier_init.release.cluster;>"
        + CLUSTER.format(sem="relaxed")
        + PEER
        + REMOTE
        + "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];"
        + WHOLE,
        "missing-fence",
    ),
}


def versions(body: str) -> tuple[str, str]:
    """The body with its pieces in angle brackets, and without (or with the part behind |)."""
    right, wrong = [], []
    for piece in body.split("<"):
        kept, closed, rest = piece.rpartition(">")
        left, _, instead = kept.partition("|")
        right.append((left if closed else "") + rest)
        wrong.append((instead if closed else "") + rest)
    return "".join(right), "".join(wrong)


def run(body: str, *, seed: int = 0, cluster: int = 1, check: str = "full") -> np.ndarray:
    out = np.full(1024, 0xAAAAAAAA, np.uint32)
    flags = np.zeros(64, np.uint32)
    launch(HEADER + body + " ret; }", "k", grid=2, block=64, cluster=cluster,
           params=[out, flags], seed=seed, check=check, resident=2)  # fmt: skip
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ROWS | CLUSTER_ROWS)
def test_with_its_synchronisation_a_kernel_has_no_race(name, seed):
    body, _ = (ROWS | CLUSTER_ROWS)[name]
    run(versions(body)[0], seed=seed, cluster=2 if name in CLUSTER_ROWS else 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [n for n, row in (ROWS | CLUSTER_ROWS).items() if row[1]])
def test_without_it_every_order_of_events_is_refused(name, seed):
    body, category = (ROWS | CLUSTER_ROWS)[name]
    with pytest.raises(Trap) as caught:
        run(versions(body)[1], seed=seed, cluster=2 if name in CLUSTER_ROWS else 1)
    assert caught.value.category in category.split(","), str(caught.value)


def test_a_race_names_both_parties():
    body = "@%p1 st.shared.u32 [%r6], %r0;\n@!%p1 ld.shared.u32 %r8, [%r2];"
    found = set()
    for seed in range(12):
        with pytest.raises(Trap) as caught:
            run(body, seed=seed)
        found.add((caught.value.line, caught.value.message))
    text = (
        "the {} of 4 bytes of shared offset 0x410 of cta ({c}, 0, 0) is not ordered behind the {}"
    )
    text += " by warp {} of cta ({c}, 0, 0) (ptx:{}): no barrier, mbarrier, commit or release and"
    text += " acquire leads from there to here"
    for line, message in found:
        cta = 0 if "cta (0" in message else 1
        orders = {
            FIRST + 1: text.format("read", "write", 0, FIRST, c=cta),
            FIRST: text.format("write", "read", 1, FIRST + 1, c=cta),
        }
        assert message == orders[line]
    assert {line for line, _ in found} == {FIRST, FIRST + 1}


def test_several_threads_may_write_the_same_value():
    """No order decides the result (compute-sanitizer's racecheck only informs of these too)"""
    assert (run("st.global.u32 [%rd0], 5;")[:1] == 5).all()


def test_strong_accesses_to_one_place_do_not_race():
    """PTX ISA §8.7: a data race needs a weak access"""
    out = run("atom.global.add.u32 %r8, [%rd0], 1; ld.relaxed.gpu.global.u32 %r9, [%rd0];")
    assert out[0] == np.uint32(0xAAAAAAAA + 128)


SWAPS = """ld.{where} %r8, [{at}];
  A: add.u32 %r9, %r8, %r0; mov.u32 %r10, %r8; atom.{atom} %r8, [{at}], %r10, %r9;
  setp.ne.u32 %p5, %r8, %r10; @%p5 bra A;"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_swap_loop_may_start_from_a_plain_read(seed):
    """As atomicAdd of bf16 pairs does in CUDA's headers for sm_80"""
    out = run(
        SWAPS.format(where="global.u32", at="%rd1", atom="global.cas.b32")
        + "ld.relaxed.gpu.global.u32 %r8, [%rd1]; st.global.u32 [%rd2], %r8;",
        seed=seed,
    )
    assert out[:128].max() == 2 * sum(range(64))  # the last one to read sees the whole sum
    run(SWAPS.format(where="shared.u32", at="%r2", atom="shared.cas.b32"), seed=seed)


def test_a_plain_read_beside_other_atomics_is_a_race():
    body = "@%p1 atom.global.exch.b32 %r9, [%rd1], 1; @!%p1 ld.global.u32 %r8, [%rd1];"
    found = set()
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(body, seed=seed)
        found.add(caught.value.category)
    assert found == {"race"}


def test_without_the_race_checks_a_lucky_order_passes():
    body = versions(ROWS["a barrier between a read and another warp's write"][0])[1]
    run(body, check="fast")


def test_an_unknown_level_of_checks_is_refused():
    with pytest.raises(LaunchError, match="off, fast, shipped, full, got 'none'"):
        run("", check="none")

"""A profile: bytes by memory and who moves them, bank conflicts, barriers, roles."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.observe.bank_conflicts import count_passes

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
KERNEL = (
    HEADER
    + """.extern .shared .align 1024 .b8 cells[];
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 stride) {{
  .reg .pred %p, %first; .reg .b16 %h; .reg .b32 %tid, %at, %own, %peer, %stride, %x<8>;
  .reg .b64 %from, %to, %w<4>;
  ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %stride, [stride];
  mov.u32 %tid, %tid.x; mov.u32 %own, cells;
  mad.lo.u32 %at, %tid, %stride, %own;
  {body}
  ret; }}"""
)
FILL = """shl.b32 %x0, %tid, 2;
FILL:
  add.u32 %x1, %own, %x0; st.shared.u32 [%x1], %x0; add.u32 %x0, %x0, 128;
  setp.lt.u32 %p, %x0, 8192; @%p bra FILL;"""


def profile_of(body: str, stride: int = 4, threads: int = 32, ctas: int = 1, **options):
    source, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    report = launch(
        KERNEL.format(body=body),
        "k",
        grid=ctas,
        block=threads,
        shared_bytes=8192,
        params=[source, out, stride],
        profile=True,
        **options,
    )
    return report.profile


def bytes_of(body: str, **options) -> dict:
    found = profile_of(body, **options).bytes
    return {key: amount for key, amount in found.items() if key[0] != "param"}


# -- bank conflicts --------------------------------------------------------------------------


def brute_force(addresses, lanes, size):
    """Serve each half, quarter or whole warp by repeated passes that take one word a bank."""
    share = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    ways = []
    for start in range(0, 32, share):
        wanted = {
            (address + byte) // 4
            for address, lane in zip(addresses, lanes, strict=True)
            if start <= lane < start + share
            for byte in range(0, size, min(size, 4))
        }
        passes = 0
        while wanted:
            wanted -= set({word % 32: word for word in wanted}.values())
            passes += 1
        ways += [passes] if passes else []
    return sum(ways), len(ways), max(ways)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(8))
def test_passes_are_those_of_serving_one_word_a_bank(size, seed):
    rng = np.random.default_rng([size, seed])
    lanes = np.sort(rng.permutation(32)[: rng.integers(1, 33)])
    addresses = rng.integers(0, 256 << seed % 3, len(lanes)) * size
    found = count_passes(addresses.astype(np.uint64), lanes, size)
    assert found == brute_force(addresses.tolist(), lanes.tolist(), size)


@pytest.mark.parametrize(
    ("stride", "ways"), [(0, 1), (4, 1), (8, 2), (16, 4), (12, 1), (128, 32), (132, 1)]
)
def test_a_stride_has_its_ways(stride, ways):
    (found,) = profile_of("st.shared.u32 [%at], 7;", stride).conflicts
    assert (found.executions, found.passes, found.least_passes) == (1, ways, 1)
    assert found.worst_ways == ways
    assert found.ptx_text == "st.shared.u32 [%at], 7"


@pytest.mark.parametrize(
    ("kind", "stride", "passes"), [("v2", 8, 2), ("v4", 16, 4), ("v2", 16, 4), ("v4", 32, 8)]
)
def test_wide_accesses_are_served_in_parts(kind, stride, passes):
    values = ", ".join(["%tid"] * int(kind[1]))
    (found,) = profile_of(f"st.shared.{kind}.u32 [%at], {{{values}}};", stride).conflicts
    assert (found.passes, found.least_passes) == (passes, int(kind[1]))


@pytest.mark.parametrize(("pitch", "ways"), [(16, 1), (128, 8), (144, 1), (64, 4)])
def test_rows_of_ldmatrix_conflict_by_their_pitch(pitch, ways):
    body = (
        FILL
        + "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x2, %x3, %x4, %x5}, [%at];"
    )
    *_, found = profile_of(body, pitch).conflicts
    assert (found.least_passes, found.passes, found.worst_ways) == (4, 4 * ways, ways)


def test_generic_addresses_of_shared_memory_have_banks_too():
    body = "cvt.u64.u32 %w0, %at; cvta.shared.u64 %w0, %w0; st.u32 [%w0], %tid;"
    (found,) = profile_of(body, 8).conflicts
    assert found.worst_ways == 2


# -- bytes -----------------------------------------------------------------------------------


def test_threads_are_counted_by_the_memory_that_an_address_is_in():
    body = """cvt.u64.u32 %w0, %at; cvta.shared.u64 %w0, %w0; st.u32 [%w0], %tid;
      mad.wide.u32 %w1, %tid, 4, %from; ld.u32 %x0, [%w1];
      setp.lt.u32 %p, %tid, 5; mad.wide.u32 %w1, %tid, 4, %to; @%p st.global.u32 [%w1], %x0;
      red.shared.add.u32 [%at], 1;"""
    assert bytes_of(body) == {
        ("shared", "write", "threads"): 128 + 128,
        ("shared", "read", "threads"): 128,
        ("global", "read", "threads"): 128,
        ("global", "write", "threads"): 20,
    }


def test_a_store_to_a_peer_is_distributed_shared_memory():
    body = """mov.u32 %x0, %cluster_ctarank; xor.b32 %x0, %x0, 1;
      mapa.shared::cluster.u32 %peer, %at, %x0;
      barrier.cluster.arrive; barrier.cluster.wait;
      st.shared::cluster.u32 [%peer], %tid; st.shared.u32 [%at+4096], %tid;
      barrier.cluster.arrive; barrier.cluster.wait;"""
    assert bytes_of(body, ctas=2, cluster=2) == {
        ("distributed shared", "write", "threads"): 2 * 128,
        ("shared", "write", "threads"): 2 * 128,
    }


def test_bulk_copies_are_the_engine_s():
    body = """setp.eq.u32 %first, %tid, 0; @!%first bra END;
      mbarrier.init.shared::cta.b64 [%own], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%own], 96;
      add.u32 %x0, %own, 256;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x0], [%from], 96, [%own];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%own], 0; @!%p bra W;
      cp.async.bulk.global.shared::cta.bulk_group [%to], [%x0], 64;
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
    assert bytes_of(body) == {
        ("global", "read", "tma"): 96,
        ("shared", "write", "tma"): 96,
        ("shared", "read", "tma"): 64,
        ("global", "write", "tma"): 64,
    }


def test_non_bulk_copies_count_what_they_read_and_fill():
    body = """mad.wide.u32 %w0, %tid, 4, %from; cp.async.ca.shared.global [%at], [%w0], 4, 4;
      cp.async.wait_all;"""
    assert bytes_of(body) == {
        ("global", "read", "cp.async"): 128,
        ("shared", "write", "cp.async"): 128,
    }


# -- barriers and roles ----------------------------------------------------------------------

PING = """setp.eq.u32 %first, %tid, 0;
  @%first mbarrier.init.shared::cta.b64 [%own+8], 1;
  bar.sync 0;
  setp.lt.u32 %p, %tid, 32; @%p bra WAIT; setp.eq.u32 %first, %tid, 32;
  @%first mbarrier.arrive.shared::cta.b64 _, [%own+8];
  bra END;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%own+8], 0; @!%p bra WAIT;
END:"""


@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_has_its_phases_and_waits(seed):
    names = {"barriers": [{"name": "ready", "offset_bytes": 8, "count": 1}]}
    profile = profile_of(PING, threads=64, ctas=3, names=names, seed=seed)
    (ready,) = [use for use in profile.barriers if use.name == "ready"]
    assert (ready.signals, ready.phases) == (3, 3)
    assert ready.waits == 3 + ready.suspended
    (whole,) = [use for use in profile.barriers if use.name == "barrier 0"]
    assert whole.suspended == 3


def test_warps_that_run_the_same_instructions_are_one_role():
    body = """setp.lt.u32 %p, %tid, 64; @%p bra END; add.u32 %x0, %tid, 1; END:"""
    first, second = profile_of(body, threads=160).roles
    assert (first.name, first.warps) == ("warps 0-1", [0, 1])
    assert (second.name, second.warps) == ("warps 2-4", [2, 3, 4])
    assert first.instructions["add.u32"] == 0 and second.instructions["add.u32"] == 3


def test_roles_have_the_names_of_the_launch_and_hold_every_instruction():
    roles = [{"name": "all", "first_warp": 0, "warps": 2}]
    body = "bar.sync 0; add.u32 %x0, %tid, 1;"
    (role,) = profile_of(body, threads=64, names={"roles": roles}).roles
    assert (role.name, role.warps) == ("all", [0, 1])
    assert role.instructions["bar.sync"] == 2


def test_a_profile_changes_nothing_else():
    arrays = [np.zeros(64, np.uint32) for _ in range(2)]
    text = KERNEL.format(body=PING)
    plain, profiled = (
        launch(text, "k", grid=2, block=64, shared_bytes=64, params=[*arrays, 4], seed=3, **how)
        for how in ({}, {"profile": True})
    )
    assert plain.profile is None and "profile" not in plain.as_dict()
    found = profiled.as_dict()
    assert found.pop("profile")["roles"]
    assert found == plain.as_dict()


def test_the_words_hold_every_table():
    words = str(profile_of(PING, threads=64)).splitlines()
    heads = [line for line in words if not line.startswith(" ")]
    assert [head.split(" (")[0] for head in heads] == [
        "bytes moved",
        "shared-memory passes",
        "global-memory requests by size",
        "barriers",
        "instructions by role",
    ]
    assert any(line.split() == ["mbarrier", "0x408", "1", "1", "1", "0"] for line in words) or any(
        line.split() == ["mbarrier", "0x408", "1", "1", "2", "1"] for line in words
    )

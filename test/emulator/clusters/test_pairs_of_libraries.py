"""What ThunderKittens' and CuTe's kernels for pairs rely on: told of where that is asked for."""

import pytest

from tilewright.runtime.emulator import Trap, launch

MEET = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
PLACE = "mov.u32 %place, place; cvt.u64.u32 %wide, %place;"
KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry pair() .explicitcluster .reqnctapercluster 2, 1, 1 {{
  .shared .align 4 .b32 place;
  .shared .align 8 .b64 bar;
  .shared .align 1024 .b8 tile[4096];
  .reg .b32 %at, %place, %rank, %there, %tid_x; .reg .b64 %wide, %desc;
  .reg .pred %first, %lead, %done;
  mov.u32 %tid_x, %tid.x; setp.lt.u32 %first, %tid_x, 32; mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %lead, %rank, 0;
  {start}
  @%first tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%wide], 64;
  @%first tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %at, [place];
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
  {work}
  @!%first bra END;
  {end}
  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %at, 64;
END: ret;
}}
"""
LEAVE = "barrier.cluster.arrive; barrier.cluster.wait;"
"""The threads of the first warp meet those of the other CTA; all other warps have exited."""
STORE = """add.u32 %there, %tid_x, 0; and.b32 %there, %there, 96; shl.b32 %there, %there, 16;
  add.u32 %there, %there, %at;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%there], {{%tid_x}};
  tcgen05.wait::st.sync.aligned; {fence}"""
BEFORE = "tcgen05.fence::before_thread_sync;"


def run(start=MEET + PLACE, work="", end=LEAVE, seed=0, check="full"):
    text = KERNEL.format(start=start, work=work, end=end)
    return launch(text, "pair", grid=2, block=64, cluster=2, seed=seed, check=check).warnings


def refused(**options) -> Trap:
    with pytest.raises(Trap) as caught:
        run(**options)
    return caught.value


@pytest.mark.parametrize("seed", range(4))
def test_memory_is_asked_for_before_the_peer_is_there(seed):
    trap = refused(start=PLACE, seed=seed)
    assert trap.category == "race" and "not ordered behind the start of cta" in trap.message
    (warning,) = run(start=PLACE, seed=seed, check="shipped")
    assert warning.category == "early-alloc" and "tcgen05.alloc" in warning.message


@pytest.mark.parametrize("seed", range(4))
def test_a_generic_address_is_given_to_an_instruction_of_shared_memory(seed):
    """ptxas makes machine code of the low 32 bits, in which it is the address of its own space"""
    generic = f"{MEET} {PLACE} cvta.shared.u64 %wide, %wide;"
    (warning,) = run(start=generic, seed=seed)
    assert warning.category == "generic-address"
    assert "is a generic address, and .shared::cta takes none" in warning.message


@pytest.mark.parametrize("seed", range(4))
def test_an_instruction_without_a_state_space_is_given_an_address_of_shared_memory(seed):
    """As Triton 3.6 writes tcgen05.commit"""
    work = """@%first mov.u32 %place, bar; cvt.u64.u32 %wide, %place; setp.eq.u32 %done, %tid_x, 0;
      @%done mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive; barrier.cluster.wait;
      @%done tcgen05.commit.cta_group::2.mbarrier::arrive::one.b64 [%wide];
      WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0; @!%done bra WAIT;"""
    told = {warning.category: warning.message for warning in run(work=work, seed=seed)}
    assert "is no generic address, and no state space is named" in told.pop("generic-address")
    assert set(told) <= {"empty-commit"}


@pytest.mark.parametrize("seed", range(6))
def test_what_exited_warps_did_to_tensor_memory_is_over_behind_the_barrier_of_the_cluster(seed):
    """PTX ISA §9.7.13.3: it waits for all threads that have not exited"""
    told = run(work=STORE.format(fence=BEFORE), seed=seed)
    assert [each.category for each in told] == ["unread-store"]


@pytest.mark.parametrize("end", ["", "barrier.cluster.arrive;"])
@pytest.mark.parametrize("seed", range(4))
def test_without_that_barrier_nothing_orders_it(seed, end):
    trap = refused(work=STORE.format(fence=BEFORE), end=end, seed=seed)
    assert "tcgen05.dealloc of tensor memory columns" in trap.message


SHARED = """@!%first st.shared.u32 [tile+128], %tid_x; @!%first bra END; bar.warp.sync -1;
  barrier.cluster.arrive; barrier.cluster.wait; {then} """


@pytest.mark.parametrize("seed", range(4))
def test_what_exited_warps_wrote_may_be_replaced_and_not_read(seed):
    store = SHARED.format(then="st.shared.u32 [tile+128], %rank;")
    load = SHARED.format(then="ld.shared.u32 %there, [tile+128];")
    one = "setp.eq.u32 %done, %tid_x, 32; @%done "
    assert not run(work=store.replace("@!%first st", one + "st"), seed=seed)
    assert refused(work=load.replace("@!%first st", one + "st"), seed=seed).category == "race"


ARRIVE = """@%first mov.u32 %place, bar; @!%first bra END; @%lead bra LEADER;
  {store}
  mapa.shared::cluster.u32 %place, %place, 0;
  mbarrier.arrive{order}.shared::cluster.b64 _, [%place]; bra LAST;
  LEADER: mbarrier.try_wait.parity.shared::cta.b64 %done, [%place], 0; @!%done bra LEADER;
  tcgen05.fence::after_thread_sync; mov.b64 %desc, {descriptor};
  setp.eq.u32 %done, %tid_x, 0;
  @%done tcgen05.cp.cta_group::2.128x128b [%at], %desc;
  @%done tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [bar2];
  COPIED: mbarrier.try_wait.parity.shared::cta.b64 %done, [bar2], 0; @!%done bra COPIED;
  LAST: """


def copied(order: str, fence: str, seed: int, check: str = "full"):
    """CTA 1 writes to tensor memory and tells the leader, which replaces it in both."""
    fill = """mov.u32 %at, tile; mad.lo.u32 %at, %tid_x, 4, %at; st.shared.u32 [%at], %tid_x;
      st.shared.u32 [%at+256], %tid_x; st.shared.u32 [%at+512], %tid_x;
      st.shared.u32 [%at+768], %tid_x; st.shared.u32 [%at+1024], %tid_x;
      st.shared.u32 [%at+1280], %tid_x; st.shared.u32 [%at+1536], %tid_x;
      st.shared.u32 [%at+1792], %tid_x; fence.proxy.async.shared::cta; setp.eq.u32 %done, %tid_x, 0;
      @%done mbarrier.init.shared::cta.b64 [bar], 32;
      @%done mbarrier.init.shared::cta.b64 [bar2], 1;
      barrier.cluster.arrive; barrier.cluster.wait; """
    descriptor = 1024 >> 4 | 128 >> 4 << 16 | 256 >> 4 << 32 | 1 << 46
    """Start address, LBO, SBO, and what a descriptor always has."""
    store = STORE.format(fence=fence)
    work = ARRIVE.format(store=store, order=order, descriptor=descriptor)
    text = KERNEL.replace(".shared .align 8 .b64 bar;", ".shared .align 8 .b64 bar, bar2;")
    text = text.format(start=fill + PLACE, work=work, end=LEAVE)
    return launch(text, "pair", grid=2, block=64, cluster=2, seed=seed, check=check).warnings


@pytest.mark.parametrize(
    ("order", "fence"), [("", BEFORE), (".release.cluster", BEFORE), (".release.cluster", "")]
)
def test_a_fence_or_the_scope_of_the_cluster_orders_a_peers_store_to_tensor_memory(order, fence):
    for seed in range(3):
        told = {warning.category for warning in copied(order, fence, seed)}
        assert told == ({"unfenced"} if not fence else set())


def test_an_arrival_of_the_scope_of_a_cta_does_not():
    """CUTLASS's example 86 hands operand A over so."""
    for seed in range(4):
        with pytest.raises(Trap) as caught:
            copied("", "", seed)
        assert caught.value.category == "race"
        assert "tcgen05.st of warp 0 of cluster rank 1" in caught.value.message
        assert "scope .cta at the mbarrier of another CTA" in caught.value.message
        told = {warning.category for warning in copied("", "", seed, check="shipped")}
        assert "narrow-arrival" in told and told <= {"narrow-arrival", "unfenced"}


@pytest.mark.parametrize("seed", range(4))
def test_the_address_of_tensor_memory_is_read_behind_a_relaxed_barrier_of_the_cluster(seed):
    """DeepGEMM's kernels for pairs do so (PTX ISA §9.7.13.3: .relaxed orders no memory)"""
    text = KERNEL.replace("bar.sync 0;", "barrier.cluster.arrive.relaxed; barrier.cluster.wait;")
    text = text.format(start=MEET + PLACE, work="", end=LEAVE)
    with pytest.raises(Trap) as caught:
        launch(text, "pair", grid=2, block=64, cluster=2, seed=seed)
    assert "the write by tcgen05.alloc" in caught.value.message
    report = launch(text, "pair", grid=2, block=64, cluster=2, seed=seed, check="shipped")
    assert {warning.category for warning in report.warnings} == {"relaxed-alloc"}
    text = text.replace("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", "", 1)
    with pytest.raises(Trap):
        launch(text, "pair", grid=2, block=64, cluster=2, seed=seed, check="shipped")

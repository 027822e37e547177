"""Scopes between the CTAs of a cluster: those of .cta order nothing there (PTX ISA §8.7).

An arrival of scope .cta at another CTA's mbarrier says that accesses are over, as CUTLASS's
consumers do with it; what was written before is not handed over by it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(4)
TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<8>;
  .shared .align 16 .b8 tile[256]; .shared .align 8 .b64 bar; .shared .align 8 .b64 full;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.u32 %r3, %cluster_ctarank;
  shl.b32 %r4, %r0, 2; add.u32 %r5, %r2, %r4; mov.u32 %r11, full;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r3, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 32; @%p0 mbarrier.init.shared::cta.b64 [%r11], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  xor.b32 %r6, %r3, 1; mapa.shared::cluster.u32 %r7, %r1, %r6;
  mapa.shared::cluster.u32 %r8, %r2, %r6;
  {body}
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret; }}
"""
ARRIVE = "mbarrier.arrive{}.shared::cluster.b64 _, [%r7];"
WAIT = "W: mbarrier.try_wait.parity{}.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;"
# The CTA of rank 1 writes its own memory and tells rank 0, which reads it there.
HAND_OVER = """@%p1 bra READER; st.shared.u32 [%r5], 7; {release} bra END;
  READER: {acquire} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%rd0], %r9; END:"""
# The CTA of rank 1 reads its own memory and tells rank 0, which overwrites it.
FREE = """st.shared.u32 [%r5], 7; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p1 bra WRITER; ld.shared.u32 %r9, [%r5]; {release} bra END;
  WRITER: {acquire} add.u32 %r8, %r8, %r4; st.shared::cluster.u32 [%r8], 9; END:"""


def run(body: str, seed: int, check: str = "full") -> int:
    out = np.zeros(1, np.uint32)
    launch(TEXT.format(body=body), "k", grid=2, block=32, cluster=2, params=[out], seed=seed,
           check=check)  # fmt: skip
    return int(out[0])


RIGHT = {
    "cluster": (ARRIVE.format(".release.cluster"), WAIT.format(".acquire.cluster")),
    "a wait without a scope": (ARRIVE.format(".release.cluster"), WAIT.format("")),
    "a fence before an arrival of the CTA": (
        "fence.acq_rel.cluster;" + ARRIVE.format(""),
        WAIT.format(""),
    ),
    "a fence before a relaxed arrival": (
        "fence.acq_rel.gpu;" + ARRIVE.format(".relaxed.cluster"),
        WAIT.format(""),
    ),
    "through a thread of the own CTA": (
        # the write is known to the arriving thread by its own CTA's barrier
        "bar.sync 0;" + ARRIVE.format(".release.cluster"),
        WAIT.format(""),
    ),
}
WRONG = {
    "without a scope": (ARRIVE.format(""), WAIT.format(".acquire.cluster")),
    "of the CTA": (ARRIVE.format(".release.cta"), WAIT.format(".acquire.cluster")),
    "relaxed": (ARRIVE.format(".relaxed.cluster"), WAIT.format("")),
    "relaxed behind a fence of the CTA": (
        "fence.acq_rel.cta;" + ARRIVE.format(".relaxed.cluster"),
        WAIT.format(""),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_reaches_the_cluster_hands_over_writes(name):
    release, acquire = RIGHT[name]
    for seed in SEEDS:
        assert run(HAND_OVER.format(release=release, acquire=acquire), seed) == 7


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_is_a_race_in_every_order(name):
    release, acquire = WRONG[name]
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(HAND_OVER.format(release=release, acquire=acquire), seed)
        assert caught.value.category == "race"
        narrow = "relaxed" not in release
        assert ("arrive with .release.cluster" in str(caught.value)) is narrow
        if narrow:
            assert run(HAND_OVER.format(release=release, acquire=acquire), seed, "shipped") == 7


@pytest.mark.parametrize("scope", ["", ".release.cta", ".release.cluster"])
def test_an_arrival_of_any_scope_says_that_a_slot_is_free(scope):
    """CUTLASS's ClusterBarrier::arrive writes no scope where consumers release a slot"""
    for seed in SEEDS:
        run(FREE.format(release=ARRIVE.format(scope), acquire=WAIT.format("")), seed)


def test_a_relaxed_arrival_does_not():
    for seed in SEEDS:
        with pytest.raises(Trap, match="race: "):
            run(FREE.format(release=ARRIVE.format(".relaxed.cluster"), acquire=WAIT.format("")),
                seed)  # fmt: skip


def test_the_barrier_of_the_own_cta_needs_no_wider_scope():
    body = """@%p1 bra END; st.shared.u32 [%r5], 7; mbarrier.arrive.shared::cta.b64 _, [%r1];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;
    ld.shared.u32 %r9, [%r2]; END:"""
    for seed in SEEDS:
        run(body, seed)


@pytest.mark.parametrize(("scope", "category"), [("cta", "race"), ("cluster", None)])
def test_a_flag_between_ctas_of_a_cluster_needs_the_clusters_scope(scope, category):
    body = """@%p1 bra READER; @!%p0 bra END; st.shared.u32 [%r2], 7;
    st.release.SCOPE.shared::cta.u32 [%r2+128], 1; bra END;
    READER: ld.acquire.SCOPE.shared::cluster.u32 %r9, [%r8+128];
    setp.ne.u32 %p2, %r9, 1; @%p2 bra READER; ld.shared::cluster.u32 %r9, [%r8]; END:"""
    body = "@%p0 st.shared.u32 [%r2+128], 0; barrier.cluster.arrive; barrier.cluster.wait;" + body
    for seed in SEEDS:
        if category is None:
            run(body.replace("SCOPE", scope), seed)
            continue
        with pytest.raises(Trap) as caught:
            run(body.replace("SCOPE", scope), seed)
        assert caught.value.category == category


def test_what_libraries_ship_hides_no_race_of_other_words():
    """The upper lanes write anew behind the arrival, which hands on the other words alone"""
    late = "setp.ge.u32 %p4, %r0, 16; @%p4 st.shared.u32 [%r5], 7;"
    each = HAND_OVER.replace("ld.shared", "add.u32 %r8, %r8, %r4; ld.shared")
    parts = {"release": ARRIVE.format(""), "acquire": WAIT.format("")}
    for seed in range(4):
        assert run(each.format(**parts), seed, "shipped") == 7
        parts_late = {**parts, "release": f"{parts['release']} {late}"}
        with pytest.raises(Trap, match="race"):
            run(each.format(**parts_late), seed, "shipped")

"""Launches that prefer a larger cluster (CUDA driver API, preferred cluster dimension)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import LaunchError, Trap, launch

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
REQUIRED{
.shared .align 8 .b8 word[8];
.shared .align 16 .b8 answer[16];
.reg .b32 %r<20>; .reg .b64 %p<4>; .reg .pred %q;
ld.param.u64 %p0, [out];
"""
# What a CTA knows of its cluster, and the number of the one before it in the cluster.
NEIGHBOURS = """
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %cluster_nctarank; mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, %clusterid.x; mov.u32 %r4, %nclusterid.x; mov.u32 %r5, %cluster_ctaid.x;
mov.u32 %r6, %cluster_nctaid.x;
add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r1;
mov.u32 %r8, word; mapa.shared::cluster.u32 %r9, %r8, %r7;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
st.shared::cluster.u32 [%r9], %r0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.u32 %r10, [word];
mul.wide.u32 %p1, %r0, 32; add.s64 %p1, %p0, %p1;
st.global.v4.b32 [%p1], {%r1, %r2, %r3, %r4};
st.global.v4.b32 [%p1+16], {%r5, %r6, %r10, %r0};
ret;
}
"""
CANCEL = """
mov.u32 %r1, answer; mov.u32 %r2, word;
mbarrier.init.shared::cta.b64 [word], 1;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];
ret;
}
"""
CTAS = 16


def run(body: str, required: str = "", **shape: object) -> tuple[np.ndarray, int]:
    out = np.zeros((CTAS, 8), np.uint32)
    text = HEAD.replace("REQUIRED", required) + body
    how = {"grid": CTAS, "block": 1, "cluster": 2, "preferred": 4} | shape
    report = launch(text, "k", params=[out], **how)
    return out, report.engines["preferred clusters"]


def expected(cta: int, size: int) -> list[int]:
    """What the CTA writes, in a cluster of that size: in the order of the text above."""
    rank, first = cta % size, cta - cta % size
    return [size, rank, cta // size, CTAS // size, rank, size, first + (rank - 1) % size, cta]


def test_ctas_start_in_clusters_of_either_shape():
    """Each counts its clusters as if there were no other."""
    seen = set()
    for seed in range(4):
        out, preferred = run(NEIGHBOURS, seed=seed)
        sizes = out[:, 0].tolist()
        assert all(sizes[at : at + 4] in ([4] * 4, [2] * 4) for at in range(0, CTAS, 4))
        assert out.tolist() == [expected(cta, size) for cta, size in enumerate(sizes)]
        assert preferred == sizes.count(4) // 4
        seen.add(tuple(sizes))
    assert len(seen) > 1 and all({2, 4} == set(sizes) for sizes in seen)


def test_a_launch_that_prefers_no_other_has_one_shape():
    for preferred in (None, 2):
        out, larger = run(NEIGHBOURS, preferred=preferred)
        assert larger == 0 and out.tolist() == [expected(cta, 2) for cta in range(CTAS)]


@pytest.mark.parametrize(
    "shape, required, message",
    [
        ({"preferred": 3}, "", "preferred (3, 1, 1) must be a multiple of cluster (2, 1, 1)"),
        ({"preferred": 32}, "", "a preferred cluster has 1..16 CTAs, got (32, 1, 1)"),
        ({"grid": 18}, "", "grid (18, 1, 1) must be a multiple of preferred (4, 1, 1)"),
        ({}, ".reqnctapercluster 2, 1, 1\n",
         "preferred must be left out (.reqnctapercluster), got (4, 1, 1)"),
        ({"only": [(0, 0, 0)]}, "", "only: must be left out where clusters have two shapes"),
    ],
)  # fmt: skip
def test_what_no_launch_can_prefer_is_refused(shape, required, message):
    with pytest.raises(LaunchError) as refused:
        run(NEIGHBOURS, required, **shape)
    assert str(refused.value) == f"kernel k: {message}"


def test_launch_control_of_two_shapes_is_not_modelled():
    with pytest.raises(Trap, match="of which shape the cluster is that it cancels") as trap:
        run(CANCEL)
    assert trap.value.category == "unmodelled"

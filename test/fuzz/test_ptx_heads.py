"""Which `.target` and `.version` instructions need: the emulator refuses what ptxas does."""

import pytest
from ptx_grid import compare

HEADS = [
    *[("sm_80", "8.4"), ("sm_89", "8.4"), ("sm_90", "8.4"), ("sm_90a", "8.3"), ("sm_90a", "8.6")],
    *[("sm_100", "8.6"), ("sm_100", "8.8"), ("sm_100a", "8.6"), ("sm_100f", "8.8")],
    *[("sm_103a", "8.8"), ("sm_120", "8.8"), ("sm_120a", "8.7")],
]
TO_SHARED = "mbarrier::complete_tx::bytes [%r1], [%d0"
SUMS = "{%f1, %f2, %f3, %f4}"
LINES = [
    f"cp.async.bulk.shared::cta.global.{TO_SHARED}], 64, [%r2]",
    f"cp.async.bulk.shared::cluster.global.{TO_SHARED}], 64, [%r2]",
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%r1], 64, %h1",
    f"cp.async.bulk.tensor.2d.shared::cta.global.tile.{TO_SHARED}, {{%r3, %r2}}], [%r2]",
    *(
        f"cp.async.bulk.tensor.2d.shared::{space}.global.tile::gather4.{TO_SHARED},"
        " {%r3, %r2, %r2, %r2, %r2}], [%r2]"
        for space in ("cta", "cluster")
    ),
    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d0, {%r3, %r2, %r2, %r2, %r2}]",
    "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [%r1], 0",
    "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1]",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 64",
    "mbarrier.arrive.shared::cta.b64 %d1, [%r1], 2",
    "mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%r1], 2",
    "mbarrier.arrive_drop.shared::cta.b64 %d1, [%r1], 2",
    "mbarrier.arrive.shared::cta.b64 %d1, [%r1]",
    "redux.sync.min.f32 %f1, %f2, -1",
    "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r1], {%r2, %r3}",
    "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r1], {%r2, %r3}",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r2, %r3}, [%r1]",
    "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r2}, [%r1]",
    "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2",
    "cvt.rn.f16x2.e4m3x2 %r1, %h1",
    "cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2",
    "cvt.rp.satfinite.ue8m0x2.f32 %h1, %f1, %f2",
    "max.f32 %f1, %f2, %f3, %f1",
    "min.xorsign.abs.f32 %f1, %f2, %f3",
    "tanh.approx.bf16x2 %r1, %r2",
    "ex2.approx.ftz.bf16x2 %r1, %r2",
    "fence.acq_rel.cluster",
    "fence.sc.gpu",
    "fence.acquire.cluster",
    "fence.release.sync_restrict::shared::cta.cluster",
    "fence.mbarrier_init.release.cluster",
    *(
        f"mma.sync.aligned.{shape}.row.col.f32.e4m3.e4m3.f32 {SUMS}, {a}, {b}, {SUMS}"
        for shape, a, b in (
            ("m16n8k32", "{%r1, %r2, %r3, %r1}", "{%r1, %r2}"),
            ("m16n8k16", "{%r1, %r2}", "{%r1}"),
        )
    ),
    "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%r1, %r2}, {%r1, %r2, %r3, %r1},"
    " {%r1, %r2}, {%r1, %r2}",
]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("target", "version"), HEADS)
def test_an_instruction_needs_what_ptxas_says(target, version):
    assert compare(LINES, target, version) == ({}, {})

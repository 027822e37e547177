"""Instructions with changed types and numbers of operands are judged as ptxas judges them.

`python test/fuzz/ptx_grid.py` takes every kind of change, and shows what differs.
"""

import pytest
from ptx_grid import LINES, compare, counts, types

EVERY = 3
KNOWN = {
    "requires PTX ISA .version 9.4": "an addition to .noftz that the emulator takes earlier",
    "has no type .s": "ptxas takes signed addresses of mapa and getctarank, the ISA does not",
}


def differing(lines):
    missed, alarms = compare(lines)
    found = {**missed, **alarms}
    return {line: said for line, said in found.items() if not any(part in said for part in KNOWN)}


def test_missing_and_additional_operands_are_refused():
    assert differing(each for line in LINES for each in counts(line)) == {}


@pytest.mark.parametrize("part", range(EVERY))
@pytest.mark.sweep
def test_other_types_are_refused_or_taken_as_by_ptxas(part):
    assert differing([each for line in LINES for each in types(line)][part::EVERY]) == {}


LEGAL_AND_NOT = """
ld.acquire.global.b32 %r0, [%d0]|ld.global.cta.b32 %r0, [%d0]|ld.release.gpu.global.b32 %r0, [%d0]
ld.global.nc.volatile.b32 %r0, [%d0]|ld.param.volatile.b32 %r0, [pm]
st.acquire.gpu.global.b32 [%d0], %r0|ld.volatile.global.b32 %r0, [%d0]
ld.global.noftz.b32 %r0, [%d0]|ld.global.b32 _, [%d0]|ld.global.v2.b32 {%r0, _}, [%d0]
ld.global.v2.b32 {%r0, %d1}, [%d0]|st.global.v2.b32 [%d0], {%r0, %f0}|ld.global.b32 %r0, [%r1]
ld.global.b32 %r0, [%f1]|ld.global.b32 %r0, [16]|ld.local.b32 %r0, [16]|ld.global.b32 %r0, [1.5]
st.global.b32 [%d0], tile|add.u32 %r0, tile, 1|mov.u32 %r0, tile|add.u32 _, %r0, %r1
setp.eq.u32 _, %r0, %r1|add.f16x2 %f0, %f1, %f2|add.f16x2 %r0, %r1, 5
red.global.add.f16x2 [%d0], %r0|red.acquire.gpu.global.add.u32 [%d0], %r0
red.global.add.u32 [%d0], %r0, %d1|cvt.f32.s32 %f0, %r0|cvt.rn.f32.f16 %f0, %h0
cvt.sat.u32.u8 %r0, %h0|cvt.rzi.f16.f32 %h0, %f0|cvt.rna.relu.tf32.f32 %r0, %f0
div.f32 %f0, %f1, %f2|div.full.rn.f32 %f0, %f1, %f2|fma.f32 %f0, %f1, %f2, %f3
fma.rn.relu.f32 %f0, %f1, %f2, %f3|fma.rn.sat.f32 %f0, %f1, %f2, %f3|sqrt.approx.rn.f32 %f0, %f1
bfe.u32 %r0, %r1, 256, 1|bfe.u32 %r0, %r1, 255, 1|mbarrier.init.shared.b64 [%r0], 0
mbarrier.init.shared.b64 [%r0], 1048576|mbarrier.init.shared.b64 [%r0], 1.5
mbarrier.try_wait.parity.shared.b64 %p0, [%r0], 2
mbarrier.try_wait.parity.relaxed.shared.b64 %p0, [%r0], 1
tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 33
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 4096|mov.f64 {%r0, %r1}, %d0
mov.f32 %f0, %tid.x|mov.b64 %d0, {%r0, 0f3F800000}|bar.arrive 1, 0
"""


@pytest.mark.parametrize("row", LEGAL_AND_NOT.strip().splitlines())
def test_modifiers_addresses_and_constants_are_judged_as_by_ptxas(row):
    assert differing(row.split("|")) == {}


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_modifiers_need_their_targets(target):
    lines = """min.f16 %h0, %h1, %h2|cvt.rn.bf16x2.f32 %r0, %f0, %f1|cvt.rna.tf32.f32 %r0, %f0
        cvt.rn.tf32.f32 %r0, %f0|mul.bf16 %h0, %h1, %h2|fma.rn.bf16 %h0, %h1, %h2, %h3
        ld.shared::cluster.b32 %r0, [%r1]|add.rn.f32x2 %d0, %d1, %d2|add.f32.f16 %f0, %h1, %f2
        st.global.v8.b32 [%d0], {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}|prefetch.tensormap [%d0]
        red.global.add.v4.f32 [%d0], {%f0,%f1,%f2,%f3}|atom.global.exch.b128 %q0, [%d0], %q1
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16"""
    found = [each.strip() for row in lines.splitlines() for each in row.split("|")]
    missed, alarms = compare(found, target)
    assert (missed, alarms) == ({}, {})

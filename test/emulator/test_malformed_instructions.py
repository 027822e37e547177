"""Instructions with a wrong modifier or operand: refused with their line, never a traceback."""

from __future__ import annotations

import random
import re

import pytest

from tilewright.runtime.emulator import DeviceError
from tilewright.runtime.emulator.instructions import load_all
from tilewright.runtime.emulator.ptx.binding import decode
from tilewright.runtime.emulator.ptx.parser import parse

HEADER = """.version 9.1
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 pm[128]) {
  .shared .align 16 .b8 tile[1024];
  .reg .b8 %c<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<16>;
  .reg .f64 %g<8>; .reg .pred %p<8>; .reg .b128 %q<4>;
"""
LEGAL = """
add.s32 %r0, %r1, 5|mad.wide.u16 %r0, %h0, %h1, %r1|add.cc.u32 %r0, %r1, %r2
fma.rn.relu.bf16x2 %r0, %r1, %r2, %r3|min.ftz.f16 %h0, %h1, %h2|ex2.approx.f32 %f0, %f1
setp.lt.and.f32 %p0|%p1, %f0, %f1, !%p2|set.eq.f16x2.f16x2 %r0, %r1, %r2|selp.b32 %r0, 1, 2, %p0
cvt.rn.satfinite.e2m1x2.f32 %c0, %f0, %f1|cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0,%f1,%f2,%f3}, %r1
cvt.rn.bf16x2.f32 %r0, %f0, %f1|cvt.rzi.s32.f32 %r0, %f0|cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3
mov.b64 {%r0, %r1}, %d0|mov.b128 %q0, {%d0, %d1}|mov.u32 %r0, %tid.x|prmt.b32 %r0, %r1, %r2, 0x5410
lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0x3f, %p1|shf.l.wrap.b32 %r0, %r1, %r2, %r3
bfe.u32 %r0, %r1, 3, 4|ld.global.nc.v4.f32 {%f0,%f1,%f2,%f3}, [%d0]
st.shared.v2.b32 [tile+8], {%r0,%r1}|ld.param.b64 %d0, [pm+8]
atom.global.cas.b128 %q0, [%d0], %q1, %q2|red.global.add.v4.f32 [%d0], {%f0,%f1,%f2,%f3}
cp.async.cg.shared.global.L2::cache_hint [%r0], [%d0], 16, %p0, %d1|cp.async.wait_group 2
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0], 64, [%r1]
cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1}], [%r3]
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {%r1,%r2}], [%r3]
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [%r1], 64
st.bulk.weak [%d0], %d1, 0|tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 1, %r1
elect.sync _|%p0, -1|fence.proxy.tensormap::generic.acquire.gpu [%d0], 128|fence.acq_rel.gpu
membar.gl|mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %r1
mbarrier.init.shared::cta.b64 [%r0], 1
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d0, [%r0], 16|bar.red.popc.u32 %r0, 1, %p0
shfl.sync.bfly.b32 %r0|%p0, %r1, 1, 31, -1|vote.sync.ballot.b32 %r0, !%p0, -1
redux.sync.add.s32 %r0, %r1, -1|match.all.sync.b64 %r0|%p0, %d0, -1|call %d0, (%r0), P
brx.idx %r0, P|mapa.shared::cluster.u32 %r0, %r1, 1
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%r4]|cvta.shared.u64 %d0, %d1
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r6,%r7}
wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r0,%r1}, [%d0], %r8
tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {%r0,%r1}, [%r2]|tcgen05.wait::ld.sync.aligned
tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, {%r2,%r3,%r4,%r5}, %p0, 3
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r0], %d0, %d1, %r1, [%r5], [%r6], %p0
tcgen05.cp.cta_group::1.128x256b [%r0], %d0
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 64
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d0]|setmaxnreg.inc.sync.aligned.u32 64
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q0
red.async.release.gpu.global.add.u32 [%d0], %r0
"""
LINES = [re.sub(r"\s*$", "", text) for text in re.split(r"\n|\|(?=[a-z])", LEGAL.strip())]
OPERANDS = [
    "%r0", "%d0", "%h0", "%f0", "%g0", "%p0", "%q0", "%c0", "5", "-1", "0f3F800000", "2.5", "tile",
    "pm", "[%r0]", "[%d0]", "[tile+4]", "{%r0,%r1}", "{%f0}", "!%p0", "_", "%r0|%p0", "(%r0)",
    "%tid.x", "%clock", "[%d0, {%r0,%r1}]", "nope", "%r0+4", "{%d0,%d1}",
]  # fmt: skip
MODIFIERS = sorted({name for line in LINES for name in line.split(" ")[0].split(".")[1:]})


def refusal(line: str) -> DeviceError | None:
    """What decoding a kernel of one instruction ends with; other exceptions pass."""
    try:
        decode(parse(f"{HEADER}{line};\nret; }}"), "k")
    except DeviceError as error:
        return error
    return None


def mutated(rng: random.Random, line: str) -> str:
    opcode, _, rest = line.partition(" ")
    pieces = opcode.split(".")
    place = rng.randrange(1, len(pieces)) if len(pieces) > 1 else 1
    change = rng.random()
    if change < 0.35:
        pieces[place : place + 1] = [rng.choice(MODIFIERS)]
    elif change < 0.5:
        del pieces[place : place + 1]
    arguments = re.split(r",\s*(?![^\[{(]*[\]})])", rest) if rest else []
    if arguments and rng.random() < 0.6:
        arguments[rng.randrange(len(arguments))] = rng.choice(OPERANDS)
    if arguments and rng.random() < 0.2:
        arguments.pop()
    if rng.random() < 0.2:
        arguments.append(rng.choice(OPERANDS))
    return f"{'.'.join(pieces)} {', '.join(arguments)}"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    load_all()


NEEDS_A_LABEL = ("call", "brx")


@pytest.mark.parametrize("line", [x for x in LINES if not x.startswith(NEEDS_A_LABEL)])
def test_the_lines_that_are_changed_are_legal(line):
    assert refusal(line) is None


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(12))
def test_a_changed_instruction_is_accepted_or_refused_with_its_line(seed):
    rng = random.Random(seed)
    for line in LINES:
        for _ in range(4):
            text = mutated(rng, line)
            error = refusal(text)
            assert error is None or str(error).startswith("ptx:8"), text

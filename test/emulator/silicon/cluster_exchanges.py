"""What the two CTAs of a cluster do in each other's shared memory.

Sources: PTX ISA §9.7.9.12 (st.async), §9.7.13.7 (red.async), §9.7.9.25 (bulk copies, reductions),
§9.7.13.5 (atom), §9.7.9.8 (ld, st).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scalar_instructions import lines_of
from silicon_case import Case, generator

THREADS, CTAS, RESULTS = 32, 2, 8
_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 words, .param .u64 out)
.reqnctapercluster 2, 1, 1
{
.shared .align 128 .b8 own[2048]; .shared .align 128 .b8 target[2048]; .shared .align 8 .b64 bar;
.reg .b32 %r<40>; .reg .b32 %t, %cta, %peer, %mine, %there, %rbar, %at, %place;
.reg .b64 %p<4>, %w<8>; .reg .pred %q, %one; .reg .b16 %h<4>;
ld.param.u64 %p0, [image]; ld.param.u64 %p1, [words]; ld.param.u64 %p2, [out];
mov.u32 %t, %tid.x; mov.u32 %cta, %cluster_ctarank; xor.b32 %peer, %cta, 1;
setp.eq.u32 %one, %t, 0; mad.lo.u32 %at, %cta, 32, %t;
mad.wide.u32 %p1, %at, 32, %p1; mad.wide.u32 %p2, %at, 32, %p2;
ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%p1]; ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%p1+16];
mov.b64 %w0, {%r0, %r1}; mov.b64 %w1, {%r2, %r3};
mov.u32 %mine, own; mad.lo.u32 %mine, %t, 32, %mine;
mov.u32 %place, target; mad.lo.u32 %place, %t, 32, %place;
st.shared.v4.b32 [%mine], {%r0, %r1, %r2, %r3}; st.shared.v4.b32 [%mine+16], {%r4, %r5, %r6, %r7};
st.shared.v4.b32 [%place], {%r4, %r5, %r6, %r7};
st.shared.v4.b32 [%place+16], {%r0, %r1, %r2, %r3};
@%one mbarrier.init.shared::cta.b64 [bar], 1;
mapa.shared::cluster.u32 %there, %place, %peer;
mov.u32 %at, bar; mapa.shared::cluster.u32 %rbar, %at, %peer;
fence.mbarrier_init.release.cluster; fence.proxy.async;
@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], BYTES;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
_WAIT = """WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;
@!%q bra WAIT;
"""
_TAIL = """barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%place];
ld.shared.v4.b32 {%r24, %r25, %r26, %r27}, [%place+16];
st.global.v4.b32 [%p2], {%r20, %r21, %r22, %r23};
st.global.v4.b32 [%p2+16], {%r24, %r25, %r26, %r27};
ret;
}
"""
_TX = "mbarrier::complete_tx::bytes"
_RED = f"red.async.relaxed.cluster.shared::cluster.{_TX}"
_NAMES = ("b32", "u32", "s32", "f32"), ("b64", "u64", "s64", "f64")
REDUCTIONS = ("and.b32", "or.b32", "xor.b32", "add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32",
              "min.u32", "max.u32", "min.s32", "max.s32")  # fmt: skip
STORES = {
    **{f"st.async.weak.shared::cluster.{_TX}.{type_} [%there], %r0, [%rbar]": 4
       for type_ in _NAMES[0]},
    **{f"st.async.shared::cluster.{_TX}.{type_} [%there+8], %w0, [%rbar]": 8
       for type_ in _NAMES[1]},
    f"st.async.shared::cluster.{_TX}.v2.b32 [%there+8], {{%r1, %r5}}, [%rbar]": 8,
    f"st.async.shared::cluster.{_TX}.v4.b32 [%there+16], {{%r1, %r5, %r2, %r7}}, [%rbar]": 16,
    f"st.async.shared::cluster.{_TX}.v2.b64 [%there], {{%w1, %w0}}, [%rbar]": 16,
    f"st.async.shared::cluster.{_TX}.v4.f32 [%there], {{%r1, %r5, %r2, %r7}}, [%rbar]": 16,
    **{f"{_RED}.{op} [%there+4], %r0, [%rbar]": 4 for op in REDUCTIONS if op != "add.u64"},
    f"{_RED}.add.u64 [%there+8], %w1, [%rbar]": 8,
}  # fmt: skip
_MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned"
_ATOMS = "<inc.u32|dec.u32|add.u32|min.s32|max.u32|and.b32|xor.b32|exch.b32|add.f32>"
PLAIN = f"""
st.shared::cluster.v4.b32 [%there], {{%r1, %r3, %r5, %r7}}
st.shared::cluster.b8 [%there+5], %r1
ld.shared::cluster.v4.b32 {{%r1, %r3, %r5, %r7}}, [%there]; {_MEET}; \
st.shared.v4.b32 [%place], {{%r1, %r3, %r5, %r7}}
atom.shared::cluster.{_ATOMS} %r10, [%there+4], %r0; st.shared.b32 [%mine+4], %r10
atom.shared::cluster.cas.b32 %r10, [%there+4], %r5, %r0; st.shared.b32 [%place+20], %r10
atom.shared::cluster.add.u64 %w3, [%there+8], %w0; mov.b64 {{%r10, %r11}}, %w3; \
st.shared.b32 [%place+20], %r10
red.shared::cluster.add.u32 [%there+12], %r0
mov.u32 %r10, %cluster_ctaid.x; mov.u32 %r11, %cluster_nctaid.x; mov.u32 %r12, %cluster_nctarank; \
mov.u32 %r13, %nclusterid.x; st.shared.v4.b32 [%place], {{%r10, %r11, %r12, %r13}}; \
mov.u32 %r10, %clusterid.x; mov.u32 %r11, %ctaid.x; mov.pred %q, %is_explicit_cluster; \
selp.u32 %r12, 1, 0, %q; getctarank.shared::cluster.u32 %r13, %there; \
st.shared.v4.b32 [%place+16], {{%r10, %r11, %r12, %r13}}
"""
COPY = f"cp.async.bulk.shared::cluster.shared::cta.{_TX} [%rto], [%rfrom], SIZE, [%rbar]"
REDUCE = (
    f"cp.reduce.async.bulk.shared::cluster.shared::cta.{_TX}.OP [%rto], [%rfrom], SIZE, [%rbar]"
)


def cluster_exchanges() -> Iterator[Case]:
    """Each CTA executes the line on what lies in the other one."""
    for line, size in STORES.items():
        yield _case(line, line, size * THREADS, _WAIT)
    for line in lines_of(PLAIN):
        yield _case(line, line, 0, "")
    for number in range(4):
        title = f"cluster copy {number}"
        yield _bulk(COPY, title, generator(title))
    for operation in REDUCTIONS:
        title = f"cluster reduction {operation}"
        yield _bulk(REDUCE.replace("OP", operation), title, generator(operation))


def _bulk(line: str, title: str, rng: np.random.Generator) -> Case:
    size = 16 * int(rng.integers(1, 60))
    to, from_ = (16 * int(each) for each in rng.integers(0, (1024 - size) // 16, 2))
    addresses = f".reg .b32 %rto, %rfrom;\nmov.u32 %rfrom, own; add.u32 %rfrom, %rfrom, {from_};\n"
    addresses += f"mov.u32 %rto, target; add.u32 %rto, %rto, {to};\n"
    addresses += "mapa.shared::cluster.u32 %rto, %rto, %peer;\n"
    return _case(title, f"{addresses}@%one {line.replace('SIZE', str(size))}", size, _WAIT)


def _case(title: str, line: str, bytes_: int, wait: str) -> Case:
    rng = generator(title)
    words = rng.integers(0, 1 << 32, (THREADS * CTAS, RESULTS), np.uint32)
    if "f32" in line:
        words = (rng.integers(-50, 50, words.shape) / 4).astype(np.float32).view(np.uint32)
    text = _HEAD.replace("BYTES", str(bytes_)) + f"{line};\n{wait}{_TAIL}"
    return Case(title, text, np.zeros(4, np.uint8), words, RESULTS, ctas=CTAS)

"""Two kernels of a style that no matmul has: a scan whose CTAs look back at those before them, and
a histogram whose bins lie in a cluster, with sums that are gathered by asynchronous stores."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
SCAN = """
.visible .entry k(.param .u64 pa, .param .u64 po, .param .u64 pst, .param .u64 ptk)
.reqntid 64
{
 .shared .b32 first; .shared .b32 bid; .shared .b32 before;
 .reg .b32 %t,%w,%l,%v,%b,%i,%sum,%lo,%hi,%x; .reg .b64 %a,%o,%st,%tk,%q,%d; .reg .pred %p,%z;
 ld.param.u64 %a,[pa]; ld.param.u64 %o,[po]; ld.param.u64 %st,[pst]; ld.param.u64 %tk,[ptk];
 mov.u32 %t,%tid.x; shr.u32 %w,%t,5; mov.u32 %l,%laneid; setp.eq.u32 %z,%t,0;
 @%z atom.global.relaxed.gpu.add.u32 %b,[%tk],1;
 @%z st.shared.b32 [bid],%b;
 bar.sync 0;
 ld.shared.b32 %b,[bid]; mad.lo.u32 %i,%b,64,%t;
 mad.wide.u32 %a,%i,4,%a; mad.wide.u32 %o,%i,4,%o; ld.global.u32 %v,[%a];
 STEPS
 setp.eq.u32 %p,%t,31; @%p st.shared.b32 [first],%v;
 bar.sync 0;
 setp.eq.u32 %p,%w,1; @%p ld.shared.b32 %x,[first]; @%p add.u32 %v,%v,%x;
 setp.ne.u32 %p,%t,63; @%p bra WAIT;
 mad.wide.u32 %q,%b,8,%st;          // a word of sum and state: 1 of this CTA, 2 of all up to it
 setp.eq.u32 %p,%b,0; @%p mov.b64 %d,{%v,2}; @!%p mov.b64 %d,{%v,1};
 st.global.relaxed.gpu.b64 [%q],%d;
 mov.u32 %sum,0; @%p bra DONE;
 mov.b64 %d,%q;
BACK: add.s64 %d,%d,-8;
SPIN: ld.relaxed.gpu.global.v2.b32 {%lo,%hi},[%d]; setp.eq.u32 %p,%hi,0; @%p bra SPIN;
 add.u32 %sum,%sum,%lo; setp.eq.u32 %p,%hi,1; @%p bra BACK;
 add.u32 %lo,%sum,%v; mov.b64 %d,{%lo,2}; st.global.relaxed.gpu.b64 [%q],%d;
DONE: st.shared.b32 [before],%sum;
WAIT: bar.sync 0;
 ld.shared.b32 %x,[before]; add.u32 %v,%v,%x; st.global.b32 [%o],%v; ret;
}
""".replace(
    "STEPS",
    "".join(
        f"shfl.sync.up.b32 %x|%p,%v,{1 << step},0,-1; @%p add.u32 %v,%v,%x;\n" for step in range(5)
    ),
)
HISTOGRAM = """
.visible .entry k(.param .u64 pd, .param .u64 po, .param .u64 pg)
.reqntid 64 .reqnctapercluster 4, 1, 1
{
 .shared .align 16 .b32 bins[16]; .shared .align 8 .b64 full; .shared .align 16 .b32 sums[4];
 .shared .b32 total;
 .reg .b32 %t,%c,%r,%v,%a,%b,%i,%h,%x,%e<4>; .reg .b64 %D,%O,%G,%q; .reg .pred %p,%z;
 ld.param.u64 %D,[pd]; ld.param.u64 %O,[po]; ld.param.u64 %G,[pg];
 mov.u32 %t,%tid.x; mov.u32 %c,%clusterid.x; mov.u32 %r,%cluster_ctarank; setp.eq.u32 %z,%t,0;
 mov.u32 %h,bins; mad.lo.u32 %a,%t,4,%h; setp.lt.u32 %p,%t,16; @%p st.shared.b32 [%a],0;
 @%z st.shared.b32 [total],0;
 @%z mbarrier.init.shared.b64 [full],1;
 @%z mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _,[full],16;
 barrier.cluster.arrive.release.aligned;
 mov.u32 %i,%ctaid.x; mad.lo.u32 %i,%i,64,%t; cvt.u64.u32 %q,%i; add.s64 %D,%D,%q;
 ld.global.u8 %v,[%D];
 barrier.cluster.wait.acquire.aligned;
 shr.u32 %b,%v,4; and.b32 %i,%v,15; mad.lo.u32 %a,%i,4,%h; mapa.shared::cluster.u32 %a,%a,%b;
 red.relaxed.cluster.shared::cluster.add.u32 [%a],1;
 redux.sync.add.u32 %x,%v,-1; mov.u32 %i,%laneid; setp.eq.u32 %p,%i,0;
 @%p red.shared.add.u32 [total],%x;
 bar.sync 0;
 setp.ge.u32 %p,%t,4; @%p bra NEXT;
 ld.shared.b32 %x,[total]; mov.u32 %a,sums; mad.lo.u32 %a,%r,4,%a; mov.u32 %b,full;
 mapa.shared::cluster.u32 %a,%a,%t; mapa.shared::cluster.u32 %b,%b,%t;
 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a],%x,[%b];
NEXT: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p,[full],0; @!%p bra NEXT;
 @!%z bra MET;
 ld.shared.v4.b32 {%e0,%e1,%e2,%e3},[sums]; mov.u32 %i,%ctaid.x; mad.wide.u32 %q,%i,16,%G;
 st.global.v4.b32 [%q],{%e0,%e1,%e2,%e3};
MET: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 setp.ge.u32 %p,%t,16; @%p bra END;
 mad.lo.u32 %a,%t,4,%h; ld.shared.b32 %v,[%a]; mad.lo.u32 %i,%c,64,%t; mad.lo.u32 %i,%r,16,%i;
 mad.wide.u32 %q,%i,4,%O; st.global.b32 [%q],%v;
END: ret;
}
"""


def scan(text: str, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 100, 6 * 64).astype(np.uint32)
    sums, states, ticket = (np.zeros(size, kind) for size, kind in
                            ((values.size, np.uint32), (6, np.uint64), (1, np.uint32)))  # fmt: skip
    report = launch(HEAD + text, "k", grid=6, block=64, params=[values, sums, states, ticket],
                    seed=seed)  # fmt: skip
    assert not report.warnings
    assert np.array_equal(sums, np.cumsum(values))


def histogram(text: str, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 64, (2, 4, 64)).astype(np.uint8)
    bins, sums = np.zeros((2, 64), np.uint32), np.zeros((2, 4, 4), np.uint32)
    report = launch(HEAD + text, "k", grid=8, block=64, cluster=4, params=[values, bins, sums],
                    seed=seed)  # fmt: skip
    assert not report.warnings
    assert [np.bincount(each.ravel(), minlength=64).tolist() for each in values] == bins.tolist()
    assert np.array_equal(sums, np.repeat(values.sum(2, dtype=np.uint32)[:, None], 4, axis=1))


@pytest.mark.parametrize("seed", range(2))
def test_both_give_what_numpy_gives(seed):
    scan(SCAN, seed)
    histogram(HISTOGRAM, seed)


@pytest.mark.parametrize(
    ("run", "text", "line", "verdicts"),
    [
        (scan, SCAN, "WAIT: bar.sync 0;", "race uninitialised-read"),
        (scan, SCAN, "@%z st.shared.b32 [bid],%b;", "uninitialised-read"),
        (histogram, HISTOGRAM, "barrier.cluster.wait.acquire.aligned;", "uninitialised-read"),
        (histogram, HISTOGRAM, "full],16", "deadlock barrier-protocol"),
        (histogram, HISTOGRAM, "MET: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
         "race exited-cta"),
    ],
)  # fmt: skip
def test_a_line_that_is_left_out_is_named(run, text, line, verdicts):
    """`full],16` is not left out, but expects 4 bytes more than come."""
    label = line.split()[0] if line[0] in "WM" else ""
    broken = text.replace(line, "full],20" if line == "full],16" else label)
    assert broken != text
    with pytest.raises(Trap) as caught:
        run(broken, 0)
    assert caught.value.category in verdicts.split()

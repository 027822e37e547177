"""Release and acquire order the threads that both scopes reach (PTX ISA §8.5, §8.7)."""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u64 out)
{ .reg .b32 %v, %who; .reg .b64 %data, %flag, %out; .reg .pred %p, %waits;
  ld.param.u64 %data, [data]; ld.param.u64 %flag, [flag]; ld.param.u64 %out, [out];
  mov.u32 %who, WHO;
  setp.ne.u32 %p, %who, 0; @%p bra READER;
  st.global.u32 [%data], 7;
  RELEASE
  bra END;
READER:
  ACQUIRE
  setp.eq.u32 %waits, %v, 0; @%waits bra READER;
  BEHIND
  ld.global.u32 %v, [%data];
  st.global.u32 [%out], %v;
END:
  ret; }
"""
OTHER_CTA = ("%ctaid.x", dict(grid=2, block=1))
OTHER_CTA_OF_THE_CLUSTER = ("%ctaid.x", dict(grid=2, block=1, cluster=2))
OTHER_WARP = ("%warpid", dict(grid=1, block=64))
ATOMICS = ("atom.exch.release.{0}.global.b32 %v, [%flag], 1;",
           "atom.add.acquire.{1}.global.u32 %v, [%flag], 0;", "")  # fmt: skip
FENCES = ("fence.acq_rel.{0}; st.relaxed.gpu.global.u32 [%flag], 1;",
          "ld.relaxed.gpu.global.u32 %v, [%flag];", "fence.acq_rel.{1};")  # fmt: skip
MEMBARS = ("membar.{0}; st.relaxed.sys.global.u32 [%flag], 1;",
           "ld.relaxed.sys.global.u32 %v, [%flag];", "membar.{1};")  # fmt: skip


def hand_over(parties, pieces, scopes, seed) -> int:
    who, shape = parties
    text = TEXT.replace("WHO", who)
    for name, piece in zip(("RELEASE", "ACQUIRE", "BEHIND"), pieces, strict=True):
        text = text.replace(name, piece.format(*scopes))
    out = np.zeros(1, np.uint32)
    launch(text, "k", params=[np.zeros(1, np.uint32), np.zeros(1, np.uint32), out], seed=seed,
           **shape)  # fmt: skip
    return int(out[0])


@pytest.mark.pairwise
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("parties", "pieces", "scopes"),
    [
        (OTHER_WARP, ATOMICS, ("cta", "cta")),
        (OTHER_WARP, FENCES, ("cta", "cta")),
        (OTHER_WARP, MEMBARS, ("cta", "cta")),
        (OTHER_CTA_OF_THE_CLUSTER, ATOMICS, ("cluster", "cluster")),
        (OTHER_CTA_OF_THE_CLUSTER, FENCES, ("cluster", "gpu")),
        (OTHER_CTA, ATOMICS, ("gpu", "sys")),
        (OTHER_CTA, FENCES, ("gpu", "sys")),
        (OTHER_CTA, MEMBARS, ("gl", "sys")),
    ],
)
def test_a_scope_that_reaches_the_other_thread_will_do(parties, pieces, scopes, seed):
    assert hand_over(parties, pieces, scopes, seed) == 7


@pytest.mark.array(
    1,
    how=[
        (ATOMICS, ("cta", "gpu")),
        (ATOMICS, ("gpu", "cta")),
        (ATOMICS, ("cluster", "gpu")),
        (FENCES, ("cta", "gpu")),
        (FENCES, ("gpu", "cta")),
        (FENCES, ("gpu", "cluster")),
        (MEMBARS, ("cta", "gl")),
        (MEMBARS, ("gl", "cta")),
    ],
    seed=range(3),
)
def test_one_that_does_not_is_a_race(how, seed):
    pieces, scopes = how
    with pytest.raises(Trap) as caught:
        hand_over(OTHER_CTA, pieces, scopes, seed)
    assert caught.value.category == "race"


COUNTER = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out)
{{ .reg .b32 %v, %who; .reg .b64 %data, %out; .reg .pred %p;
  ld.param.u64 %data, [data]; ld.param.u64 %out, [out]; mov.u32 %who, %ctaid.x;
  setp.ne.u32 %p, %who, 0;
  @%p {0}
  @!%p {1}
  ret; }}
"""
COUNTS = "red.relaxed.{}.global.add.u32 [%data], 1;"
STORES = "st.relaxed.{}.global.u32 [%data], 7;"
LOADS = "ld.relaxed.{}.global.u32 %v, [%data];"


def meet(first: str, second: str, seed: int, **shape) -> int:
    data = np.zeros(1, np.uint32)
    launch(COUNTER.format(first, second), "k", params=[data, np.zeros(1, np.uint32)], seed=seed,
           **{"grid": 2, "block": 1, **shape})  # fmt: skip
    return int(data[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("one, other", [(COUNTS, COUNTS), (STORES, COUNTS), (COUNTS, LOADS)])
@pytest.mark.parametrize(
    "scopes, cluster", [(("cta", "cta"), 1), (("gpu", "cta"), 1), (("cluster", "gpu"), 1),
                        (("cluster", "cta"), 2), (("cta", "gpu"), 2)],
)  # fmt: skip
@pytest.mark.sweep(4)
def test_strong_accesses_that_do_not_reach_each_other_race(one, other, scopes, cluster, seed):
    """§8.7.1: morally strong only if each scope includes the other's thread"""
    with pytest.raises(Trap, match="the scope of one does not include the other") as caught:
        meet(one.format(scopes[0]), other.format(scopes[1]), seed, cluster=cluster)
    assert caught.value.category == "race"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "scopes, shape",
    [
        (("gpu", "sys"), {}),
        (("cluster", "cluster"), {"cluster": 2}),
        (("cluster", "gpu"), {"cluster": 2}),
        (("cta", "cta"), {"grid": 1, "block": 64}),
    ],
)
def test_strong_accesses_that_reach_each_other_do_not(scopes, shape, seed):
    counts = [COUNTS.format(scope) for scope in scopes]
    assert meet(*counts, seed, **shape) == shape.get("block", 2)

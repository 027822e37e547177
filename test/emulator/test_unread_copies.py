"""Bytes that copies bring to shared memory, of which threads read some twice and others never."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

LANES, WORDS = 32, 4
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 full;
  .reg .pred %one, %done, %few; .reg .b32 %lane, %cta, %at, %place, %last, %sum, %r<4>;
  .reg .b64 %in, %out, %from;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %lane, %tid.x; mov.u32 %cta, %ctaid.x;
  setp.eq.u32 %one, %lane, 0;
  mov.u32 %at, tile; mad.lo.u32 %place, %lane, 16, %at;
  COPY
  mov.b32 %last, LAST;
  setp.lt.u32 %few, %lane, READERS;
  add.u32 %last, %last, %place; mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
  @%few ld.shared.b32 %r0, [%place]; @%few ld.shared.b32 %r1, [%place+4];
  @%few ld.shared.b32 %r2, [%place+8]; @%few ld.shared.b32 %r3, [%last];
  xor.b32 %sum, %r0, %r1; xor.b32 %sum, %sum, %r2; xor.b32 %sum, %sum, %r3;
  mad.lo.u32 %at, %cta, 32, %lane; mad.wide.u32 %out, %at, 4, %out;
  st.global.b32 [%out], %sum;
  ret;
}"""
BY_LANES = """mad.wide.u32 %from, %lane, 16, %in;
  cp.async.cg.shared.global [%place], [%from], 16; cp.async.wait_all; bar.warp.sync -1;"""
BY_ENGINE = """@%one mbarrier.init.shared::cta.b64 [full], 1; bar.warp.sync -1;
  @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
  @%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    [tile], [%in], 512, [full];
W: mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0; @!%done bra W;"""
OF_CTA = "%cta; mad.lo.u32 %last, %last, 4, 8"


@pytest.mark.parametrize("copy", [BY_LANES, BY_ENGINE], ids=["cp.async", "bulk"])
@pytest.mark.parametrize(
    ("last", "readers", "expected"),
    [
        ("12", 32, []),
        ("8", 32, ["unread-copy"]),
        ("12", 20, []),  # what is behind all that is read may be an edge
        ("8", 20, ["unread-copy"]),
        (OF_CTA, 32, []),  # the second CTA reads what the first one leaves out
    ],
)
@pytest.mark.parametrize("check", ["full", "shipped"])
def test_it_is_told_of(copy, last, readers, expected, check):
    text = KERNEL.replace("COPY", copy).replace("LAST", last).replace("READERS", str(readers))
    assert told(text, check=check) == expected


def told(text: str, source: np.ndarray | None = None, **options) -> list[str]:
    values = np.arange(1, LANES * WORDS + 1, dtype=np.uint32) * 0x01010101
    given = values if source is None else source
    out = np.zeros((2, LANES), np.uint32)
    report = launch(text, "k", grid=2, block=LANES, params=[given, out], **options)
    return [each.category for each in report.warnings]


def without_last(**options) -> list[str]:
    text = KERNEL.replace("COPY", BY_LANES).replace("LAST", "8").replace("READERS", "32")
    return told(text, **options)


def test_zeros_need_no_reader():
    values = np.ones((LANES, WORDS), np.uint32)
    values[:, 3] = 0
    assert without_last(source=values.reshape(-1)) == []


@pytest.mark.parametrize("options", [{"workers": 2}, {"check": "fast"}])
def test_processes_that_see_a_part_each_and_fast_checks_say_nothing(options):
    assert without_last() == ["unread-copy"]
    assert without_last(**options) == []


def test_where_less_is_read_than_is_left_it_may_be_meant():
    text = KERNEL.replace("COPY", BY_LANES).replace("LAST", "0").replace("READERS", "32")
    text = text.replace("[%place+4]", "[%place]").replace("[%place+8]", "[%place]")
    assert told(text) == []

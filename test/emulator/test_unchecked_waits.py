"""A wait for an mbarrier whose answer decides nothing is no wait: a suspicion, seen in the text."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

TEXT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 8 .b64 bar;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, 1;
  @%p0 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0;
  mbarrier.arrive.shared::cta.b64 %rd1, [bar];
  {body}
END: @%p0 st.global.u32 [%rd0], %r1; ret; }}
"""
ASK = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;"
BY_STATE = "mbarrier.test_wait.shared::cta.b64 %p1, [bar], %rd1;"
CHECKED = {
    "a loop": f"W: {ASK} @!%p1 bra W;",
    "a negated answer": f"W: {BY_STATE} not.pred %p2, %p1; @%p2 bra W;",
    "an answer as a number": f"""W: {ASK} selp.b32 %r2, 1, 0, %p1; setp.eq.u32 %p3, %r2, 0;
      @%p3 bra W;""",
    "an answer that is stored": f"{ASK} selp.b32 %r1, 1, 0, %p1;",
    "asked again at once": f"W: {ASK} {ASK} @!%p1 bra W;",
    "one path alone": f"W: {ASK} setp.eq.u32 %p3, %r0, 99; @%p3 bra END; @!%p1 bra W;",
    "asked ahead, waited for later": f"""{ASK} mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1;
      setp.lt.u32 %p3, %r2, 3; @%p3 bra L; @%p1 bra END; W: {ASK} @!%p1 bra W;""",
}
UNCHECKED = {
    "nothing reads it": ASK,
    "it is negated": f"{ASK} not.pred %p2, %p1;",
    "it is overwritten": f"W: {BY_STATE} mov.pred %p1, -1; @!%p1 bra W;",
    "another answer is read": f"{ASK} V: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;"
    " @!%p1 bra V;",
}  # fmt: skip


def warnings(body: str) -> list[str]:
    out = np.zeros(1, np.uint32)
    report = launch(TEXT.format(body=body), "k", grid=1, block=32, params=[out])
    assert out[0] == 1
    return [str(each) for each in report.warnings]


@pytest.mark.parametrize("name", CHECKED)
def test_an_answer_that_decides_something_is_none(name):
    assert warnings(CHECKED[name]) == []


@pytest.mark.parametrize("name", UNCHECKED)
def test_an_answer_that_decides_nothing_is_one(name):
    (warning,) = warnings(UNCHECKED[name])
    assert warning.startswith("unchecked-wait: ptx:9: nothing looks at the answer of `mbarrier.t")

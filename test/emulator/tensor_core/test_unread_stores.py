"""Words of tensor memory that tcgen05.st writes, and nobody reads."""

import numpy as np
import pytest

STORE = "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r14+{}], {{%v1, %v1, %v1, %v1}};\n"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%r14+{}]; tcgen05.wait::ld.sync.aligned;\n"
LOAD_ALL = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%v0, %v2, %v3, %v4}, [%r14];\n"
WAIT = "tcgen05.wait::st.sync.aligned;\n"


def told(tc, *parts: str, value: int = 7) -> list[str]:
    """The warnings of a body of parts, whose stores write a value."""
    _, _, image, adesc, bdesc, word = tc.accumulating_case()
    start = f"add.u32 %r14, %r12, %r13; mov.b32 %v1, {value};\n"
    body = "".join([tc.LANE_BASE, start, *parts])
    report = tc.run(body, image, np.zeros(8, np.uint32), adesc, bdesc, word)
    return [each.category for each in report.warnings]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([STORE.format(0), WAIT], ["unread-store"]),
        ([STORE.format(0), WAIT, LOAD.format(3)], []),
        ([STORE.format(0), STORE.format(8), WAIT, LOAD.format(8)], ["unread-store"]),
        # what is stored first at a place that is read later may be replaced
        ([STORE.format(0), WAIT, STORE.format(0), WAIT, LOAD_ALL, LOAD.format(0)], []),
        ([STORE.format(0), WAIT, STORE.format(0), WAIT, LOAD.format(0)], ["unread-store"]),
    ],
)
def test_it_is_told_of(tc, parts, expected):
    assert told(tc, *parts) == expected


def test_zeros_need_no_reader(tc):
    assert told(tc, STORE.format(0), WAIT, value=0) == []

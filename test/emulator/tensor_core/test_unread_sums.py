"""Sums of products that are replaced before anybody has read them, or added to behind that."""

import numpy as np
import pytest

BAR = "mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], "
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r14]; tcgen05.wait::ld.sync.aligned;\n"
STORE = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r14], {%v1, %v1, %v1, %v1, %v1, %v1, %v1, %v1};"
FENCED = """tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
"""


def done(phase: int, number: int) -> str:
    return f"""@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
W{number}: {BAR}{phase}; @!%p7 bra W{number};
tcgen05.fence::after_thread_sync;
"""


def told(tc, *parts: str) -> list[str]:
    """The warnings of a body of parts: + adds a product to the sums, = replaces them by it"""
    _, _, image, adesc, bdesc, word = tc.accumulating_case()
    body = [tc.LANE_BASE, "add.u32 %r14, %r12, %r13; mov.b32 %v1, 0;\n"]
    for part in parts:
        body.append({"+": tc.TRUE + tc.mma("f16"), "=": tc.FALSE + tc.mma("f16")}.get(part, part))
    report = tc.run("".join(body), image, np.zeros(8, np.uint32), adesc, bdesc, word)
    return [each.category for each in report.warnings]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["=", "+", "+"], []),
        (["=", "=", "+"], ["lost-sums"]),
        (["=", "+", "="], ["lost-sums"]),
        (["=", done(0, 1), LOAD, FENCED, "="], []),
        (["=", done(0, 1), LOAD, FENCED, "+"], ["stale-sums"]),
        (["=", done(0, 1), LOAD, STORE, "tcgen05.wait::st.sync.aligned;", FENCED, "+"], []),
        (["=", done(0, 1), STORE, "tcgen05.wait::st.sync.aligned;", FENCED, "="], []),
    ],
)
def test_it_is_told_of(tc, parts, expected):
    assert told(tc, *parts, done(sum("W" in part for part in parts) % 2, 9)) == expected


def test_products_that_leave_lanes_alone_may_share_columns(tc):
    """Each writes its own lanes, so that neither replaces the other's sums"""
    lanes = "mov.b32 %v8, {}; mov.b32 %v9, {};\n"
    product = tc.mma("f16", extra="{%v8, %v8, %v9, %v9}, ")
    parts = [tc.FALSE, lanes.format(0, -1), product, lanes.format(-1, 0), product]
    assert told(tc, *parts, done(0, 9)) == []


COLUMN = LOAD.replace("{%v0}", "{{%v0}}").replace("[%r14]", "[%r14+{}]")
ROWS = "tcgen05.ld.sync.aligned.16x256b.x1.b32 {%v0, %v2, %v3, %v4}, [%r14];\n"
LATER_ROWS = "add.u32 %r14, %r14, 1048576;\n" + ROWS
WAIT = "tcgen05.wait::ld.sync.aligned;\n"


@pytest.mark.parametrize("replaced", [False, True], ids=["given up", "replaced"])
@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([COLUMN.format(0), COLUMN.format(1)], []),  # the columns behind them may be an edge
        ([COLUMN.format(0), COLUMN.format(2)], ["partly-read-sums"]),
        ([COLUMN.format(2)], ["partly-read-sums"]),
        ([ROWS, LATER_ROWS, WAIT], []),
        ([ROWS, ROWS, WAIT], ["partly-read-sums"]),
    ],
)
def test_sums_that_are_never_read_beside_others(tc, loads, expected, replaced):
    end = [FENCED, "=", done(1, 9)] if replaced else []
    assert told(tc, "=", done(0, 1), *loads, *end) == expected


def test_a_place_that_one_tile_reads_may_be_left_out_in_another(tc):
    first = ["=", done(0, 1), COLUMN.format(1), COLUMN.format(0), COLUMN.format(2)]
    second = [FENCED, "=", done(1, 2), COLUMN.format(0), COLUMN.format(2)]
    assert told(tc, *first, *second) == []
    assert told(tc, *first[:2], *first[4:], *second) == ["partly-read-sums"]

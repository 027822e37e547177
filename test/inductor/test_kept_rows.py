"""Rows of the report in the recipe of a kernel: entered once, by whoever has not seen them."""

import pytest

from tilewright.compiler.inductor import report
from tilewright.compiler.inductor.describe import Estimate
from tilewright.compiler.inductor.kept_rows import enter_kept, kept, packed, unpacked
from tilewright.compiler.inductor.report import REPORT, Row
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SPEC = MatmulSpec(64, 64, 64)
TAKEN = Row(
    "mm", "mm", ("s0", 64, 64), "bfloat16", ["relu"], True, "raced", "sum", "tiling{}",
    estimate=Estimate(SPEC, "sm_90a"), ours_us=1.5, inductor_us=2.0, at_least=True,
)  # fmt: skip
LEFT = Row("mm_1", "mm", (8, 64, 64), "float32", reason="products of float32")


def recipe(*rows, graph="a graph"):
    return packed({"jobs": [], "bands": None, "rows": kept(graph, rows).as_json()})


def test_another_process_enters_the_rows_as_they_were_and_once(rows):
    text = recipe(TAKEN, LEFT, TAKEN)
    report.reset()
    enter_kept(text)
    enter_kept(text)
    taken, left = rows
    assert (taken.count, left.count) == (2, 1)
    assert [each.cached for each in rows] == [True, True]
    for found, before in ((taken, TAKEN), (left, LEFT)):
        same = {**vars(found), "cached": False, "count": 1, "estimate": None}
        assert same == {**vars(before), "estimate": None}
    assert taken.estimate_us == TAKEN.estimate_us is not None
    assert left.estimate_us is None
    assert str(taken).endswith("; ends at sum; of a graph from torch's cache")
    assert "2 of 3 products taken" in str(REPORT)


def test_a_reason_of_several_lines_becomes_one(rows):
    text = recipe(Row("mm", "mm", (8, 8, 8), "float32", reason="of\nlines"))
    report.reset()
    enter_kept(text)
    assert rows[0].reason == "of lines"


def test_the_process_that_looked_at_the_graph_enters_nothing_again(rows):
    enter_kept(recipe(TAKEN))
    assert rows == []


def test_a_graph_has_the_same_text_each_time_and_no_other_graph_has_it(rows):
    assert recipe(TAKEN) == recipe(TAKEN)
    others = recipe(TAKEN, graph="another graph"), recipe(TAKEN, TAKEN), recipe(LEFT)
    report.reset()
    for text in others:
        enter_kept(text)
    assert [each.count for each in rows] == [1, 2, 1]


def test_a_recipe_without_rows_enters_none(rows):
    enter_kept(packed({"jobs": [], "bands": None}))
    assert rows == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda written: written.pop("name"),
        lambda written: written.update(other=1),
        lambda written: written.update(reason=3),
        lambda written: written.update(sizes=5),
        lambda written: written.update(fused=[4]),
        lambda written: written.update(sizes=[1.5]),
        lambda written: written.update(cached=True),
        lambda written: written.update(reason="\x1b[2J"),
        lambda written: written.update(estimate=[{"m": 1}, "sm_90a"]),
        lambda written: written.update(estimate=3),
        lambda written: written.update(estimate=[3, "sm_90a"]),
        lambda written: written["estimate"].__setitem__(1, "sm_1"),
        lambda written: written["estimate"][0].update(m=-1),
    ],
)
def test_what_is_no_row_is_refused_whole(damage, rows):
    found = unpacked(recipe(LEFT, TAKEN))
    report.reset()
    damage(found["rows"][1][1])
    with pytest.raises(CompileError, match="its recipe must be as graphs hold it, got "):
        enter_kept(packed(found))
    assert rows == []


def test_graphs_that_torch_took_from_its_cache_are_counted(rows, monkeypatch):
    from torch._dynamo.utils import counters

    monkeypatch.setitem(counters, "inductor", {"fxgraph_cache_hit": 2})
    monkeypatch.setitem(counters, "aot_autograd", {"autograd_cache_hit": 1})
    last = str(REPORT).splitlines()[-1]
    assert last.startswith("torch took 2 graphs from its cache: rows come with those that call a ")

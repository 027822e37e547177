"""A trace: tracks, slices, waits by name, arrows from operations to the barriers they signal."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from tilewright.runtime.emulator import GlobalArray, LaunchError, Trap, launch
from tilewright.runtime.emulator.observe import tracer

NAMES = {
    "barriers": [{"name": "loaded", "offset_bytes": 0, "count": 1}],
    "roles": [
        {"name": "producer", "first_warp": 0, "warps": 1},
        {"name": "consumer", "first_warp": 1, "warps": 1},
    ],
}
# Warp 0 copies 256 bytes into shared memory; warp 1 waits for them and writes them out.
KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k(.param .u64 from, .param .u64 to) {
  .reg .pred %first, %zero, %done; .reg .b32 %tid, %at, %x, %place; .reg .b64 %from, %to, %cell;
  ld.param.u64 %from, [from]; ld.param.u64 %to, [to];
  mov.u32 %tid, %tid.x; mov.u32 %at, dynamic;
  setp.eq.u32 %zero, %tid, 0; setp.lt.u32 %first, %tid, 32;
  @%zero mbarrier.init.shared::cta.b64 [%at], 1;
  bar.sync 0;
  @!%first bra CONSUMER;
  @!%zero bra PRODUCED;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%at], 128;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at+128], [%from], 128, [%at];
PRODUCED:
  ret;
CONSUMER:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%at], 0;
  @!%done bra CONSUMER;
  sub.u32 %tid, %tid, 32;
  mad.lo.u32 %place, %tid, 4, %at;
  ld.shared.u32 %x, [%place+128];
  mad.wide.u32 %cell, %tid, 4, %to;
  st.global.u32 [%cell], %x;
  ret;
}"""


def run(path, kernel=KERNEL, ctas=2, **options):
    source, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    report = launch(
        kernel,
        "k",
        grid=ctas,
        block=64,
        shared_bytes=1024,
        params=[GlobalArray(source), out],
        names=NAMES,
        trace=path,
        **options,
    )
    assert (out == source).all()
    return report


@pytest.fixture(params=range(3))
def trace(request, tmp_path):
    run(tmp_path / "trace.json", seed=request.param)
    return json.loads((tmp_path / "trace.json").read_text())


def titles(trace) -> dict[tuple[int, int], str]:
    """(process, thread) → its name."""
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_every_warp_engine_and_barrier_has_a_track_in_its_cta(trace):
    processes = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert processes == {"cta (0,0,0)", "cta (1,0,0)"}
    found = sorted(titles(trace).values())
    for name in ("warp 0 producer", "warp 1 consumer", "tma", "mbarrier 0x400 loaded"):
        assert found.count(name) == 2


def test_slices_of_one_row_do_not_overlap(trace):
    rows = defaultdict(list)
    for event in slices(trace):
        rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for row in rows.values():
        row.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(row))


def test_a_wait_is_named_by_its_barrier_and_ends_with_its_phase(trace):
    ends = [e["ts"] + e["dur"] for e in slices(trace) if e["name"] == "phase 0"]
    waits = [e for e in slices(trace) if e["name"] == "wait: loaded"]
    assert len(ends) == 2
    for wait in waits:
        assert wait["args"]["instruction"].startswith("mbarrier.try_wait")
        assert any(wait["ts"] < end <= wait["ts"] + wait["dur"] for end in ends)


def test_runs_hold_every_instruction_once(tmp_path):
    report = run(tmp_path / "t.json", seed=5)
    trace = json.loads((tmp_path / "t.json").read_text())
    runs = [e["args"]["instructions"] for e in slices(trace) if "instructions" in e["args"]]
    assert sum(runs) == sum(report.instructions.values())
    assert all(e["dur"] >= 1 for e in slices(trace))


def test_an_arrow_leads_from_a_copy_to_the_barrier_it_signals(trace):
    names = titles(trace)
    starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
    assert len(starts) == 2 and starts.keys() == ends.keys()
    for number, start in starts.items():
        end = ends[number]
        assert names[start["pid"], start["tid"]] == "tma"
        assert names[end["pid"], end["tid"]] == "mbarrier 0x400 loaded"
        assert start["pid"] == end["pid"]
        assert any(_encloses(e, start) for e in slices(trace))
        assert any(_encloses(e, end) and e["name"] == "phase 0" for e in slices(trace))


def _encloses(event, flow) -> bool:
    same = (event["pid"], event["tid"]) == (flow["pid"], flow["tid"])
    return same and event["ts"] <= flow["ts"] <= event["ts"] + event["dur"]


def test_a_copy_lasts_from_issue_to_completion(trace):
    copies = [e for e in slices(trace) if e["name"].startswith("bulk copy of 128 bytes")]
    assert len(copies) == 2
    line = next(n for n, text in enumerate(KERNEL.splitlines(), 1) if "cp.async.bulk" in text)
    assert {(e["args"]["ptx_line"], e["args"]["warp"]) for e in copies} == {(line, 0)}


def test_the_file_says_that_durations_are_steps(trace):
    assert "durations are steps" in trace["otherData"]["note"]
    assert (trace["otherData"]["kernel"], trace["otherData"]["dropped"]) == ("k", 0)


def test_a_trace_changes_nothing(tmp_path):
    plain, traced = run(None, seed=7), run(tmp_path / "t.json", seed=7)
    assert plain == traced


def test_a_run_that_fails_leaves_its_trace_with_open_waits(tmp_path):
    path = tmp_path / "t.json"
    with pytest.raises(Trap) as caught:
        run(path, KERNEL.replace("_, [%at], 128;", "_, [%at], 160;"))
    trace = json.loads(path.read_text())
    assert trace["otherData"]["error"] == str(caught.value).splitlines()[0]
    assert any(e["name"] == "phase 0, not complete" for e in slices(trace))
    assert any(e["name"] == "wait: loaded" for e in slices(trace))


def test_a_trace_that_cannot_be_written_is_refused_before_the_launch(tmp_path):
    path = tmp_path / "missing" / "t.json"
    message = f"trace: must lie in a folder that exists, got {path}; make the folder"
    with pytest.raises(LaunchError) as caught:
        run(path)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(tracer, "MAX_SLICES", 3)
    run(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    assert len(slices(trace)) == 3 and trace["otherData"]["dropped"] > 3

"""`launch(workers=)`: what several processes find is what one finds, or one has run it all."""

from __future__ import annotations

import json
import mmap
import os
from contextlib import contextmanager

import numpy as np
import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import LaunchError, Report, TensorMap, Trap, launch
from tilewright.runtime.emulator.host import workers
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

FOREIGN = "test/foreign/triton/matmul.sm_80"
CTAS = 6
KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .global .u32 common;
.shared .align 128 .b8 tile[128];
.visible .entry k(.param .u64 out{more}) {{
  .reg .pred %p, %bad; .reg .b32 %cta, %x, %y; .reg .b64 %out, %at, %map;
  ld.param.u64 %out, [out]; mov.u32 %cta, %ctaid.x; mad.wide.u32 %at, %cta, 4, %out;
  {body}
  ret; }}"""
OWN = "ld.global.u32 %x, [%at]; add.u32 %x, %x, %cta; st.global.u32 [%at], %x;"
ATOMIC = "atom.global.add.u32 %x, [%out+64], 1; st.global.u32 [%at], %x;"
PLAIN = "ld.global.u32 %x, [%out+64]; add.u32 %x, %x, 1; st.global.u32 [%out+64], %x;"
READING = f"{OWN} setp.eq.u32 %p, %cta, 4; @%p ld.global.u32 %y, [%out+4];"
VARIABLE = "ld.global.u32 %x, [common]; add.u32 %x, %x, 1; st.global.u32 [common], %x;"
SAME = "st.global.u32 [%out+64], 7;"
BULK = """cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 16;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
REDUCED = BULK.replace("cp.async.bulk.global", "cp.reduce.async.bulk.global").replace(
    ".bulk_group [", ".bulk_group.add.u32 ["
)
TENSOR = """mov.b64 %map, map; cvta.param.u64 %map, %map;
  cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {0}], [tile];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
OUTSIDE = f"{OWN} setp.eq.u32 %bad, %cta, 4; @%bad st.global.u32 [%at+4096], %x;"


@contextmanager
def no_process_left(monkeypatch):
    """The processes that are forked meanwhile are gone at the end; yields their ids."""
    forked, fork = [], os.fork

    def noted() -> int:
        forked.append(fork())
        return forked[-1]

    monkeypatch.setattr(workers.os, "fork", noted)
    yield forked
    for child in forked:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def run(body: str, count: int, memory: np.ndarray | None = None, **how) -> tuple[Report, list]:
    """The report, and what the array holds afterwards."""
    out = np.arange(64, dtype=np.uint32) if memory is None else memory
    params: list = [out]
    if "map" in body:
        params.append(TensorMap(out, "uint32", (64,), (), (4,), (1,)))
    text = KERNEL.format(body=body, more=", .param .align 64 .b8 map[128]" * (len(params) > 1))
    how = {"check": "off", **how}
    report = launch(text, "k", grid=CTAS, block=1, params=params, workers=count, **how)
    return report, out.tolist()


@pytest.mark.parametrize("check", ["full", "off"])
@pytest.mark.parametrize("count", [2, 3, 100])
def test_ctas_of_their_own_bytes_are_shared_out_and_nothing_else_changes(count, check, monkeypatch):
    with no_process_left(monkeypatch) as forked:
        report, found = run(OWN, count, check=check)
    assert report.workers == len(forked) == min(count, CTAS)
    assert found == [i + i * (i < CTAS) for i in range(64)]
    assert report == run(OWN, 1, check=check)[0]


def test_a_kernel_of_ours_computes_the_same_and_moves_the_same():
    bundle = as_bundle(compile_matmul(MatmulSpec(256, 512, 128), preset="v6"))
    found = []
    for count in (1, 2):
        tensors = make_tensors(bundle.manifest, 0)
        report = open_device("emulator").launch(bundle, tensors, 0, workers=count)
        assert report.workers == count
        found.append((tensors["c"].tolist(), report.engines, report.memory_bytes, report.warnings))
    assert found[0] == found[1]


def test_a_foreign_kernel_computes_the_same_and_counts_the_same():
    with open(f"{FOREIGN}.json") as file:
        described = json.load(file)
    alone, shared = (run_launch_file(f"{FOREIGN}.ptx", described, workers=n) for n in (1, 2))
    assert shared.report.workers == 2
    assert shared.report == alone.report
    assert np.array_equal(shared.outputs["c"], alone.outputs["c"])


@pytest.mark.parametrize(
    "body", [ATOMIC, PLAIN, READING, VARIABLE, SAME, BULK, REDUCED, TENSOR.format("{0}")]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_ctas_that_touch_what_others_write_run_in_one_process(body, seed, monkeypatch):
    with no_process_left(monkeypatch) as forked:
        report, found = run(body, 2, seed=seed)
    assert len(forked) == (0 if body in (ATOMIC, REDUCED) else 2)
    expected, serial = run(body, 1, seed=seed)
    assert report.workers == 1
    assert (report, found) == (expected, serial)


def test_tensor_stores_to_places_of_their_own_are_shared_out():
    body = "shl.b32 %x, %cta, 2;" + TENSOR.format("{%x}")
    filled = "st.shared.v4.u32 [tile], {%cta, %cta, %cta, %cta}; fence.proxy.async;"
    report, found = run(filled + body, 2, check="full")
    assert report.workers == 2
    assert found == [i // 4 if i < 4 * CTAS else i for i in range(64)]


@pytest.mark.parametrize("body", [PLAIN, READING, OUTSIDE])
@pytest.mark.parametrize("seed", [0, 1])
def test_races_and_traps_have_the_words_of_one_process(body, seed, monkeypatch):
    said = []
    for count in (1, 3):
        with no_process_left(monkeypatch), pytest.raises(Trap) as caught:
            run(body, count, seed=seed, check="full")
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_the_limit_of_instructions_is_that_of_all_processes_together():
    steps = run(OWN, 1)[0].steps
    assert run(OWN, 2, max_steps=steps)[0].workers == 2
    said = []
    for count in (1, 2):
        with pytest.raises(Trap, match="step-limit") as caught:
            run(OWN, count, max_steps=steps - 1)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_memory_that_the_host_shares_is_written_once():
    memory = np.frombuffer(mmap.mmap(-1, 256), np.uint32)
    report, found = run(OWN + PLAIN, 2, memory)
    assert report.workers == 1
    assert found == run(OWN + PLAIN, 1, np.zeros(64, np.uint32))[1]


def test_bytes_between_the_elements_of_an_array_stay_as_they_are():
    memory = np.full(128, 9, np.uint32)
    out = memory.reshape(64, 2)[:, 0]
    report, found = run(f"mad.wide.u32 %at, %cta, 8, %out; {OWN}", 2, out)
    assert report.workers == 2
    assert found == [9 + i * (i < CTAS) for i in range(64)]
    assert (memory[1::2] == 9).all()


def test_an_interrupt_leaves_no_process_and_no_change(monkeypatch):
    def interrupted(pipes):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "_collected", interrupted)
    memory = np.zeros(64, np.uint32)
    with no_process_left(monkeypatch) as forked, pytest.raises(KeyboardInterrupt):
        run(OWN, 2, memory)
    assert len(forked) == 2
    assert not memory.any()


def test_one_process_runs_what_cannot_be_forked(monkeypatch):
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(workers.os, "fork", refused)
    report, found = run(OWN, 2)
    assert (report.workers, found) == (1, run(OWN, 1)[1])


def test_a_profile_is_of_one_process():
    report, _ = run(OWN, 2, profile=True)
    assert report.workers == 1
    assert report.profile is not None


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_workers_are_a_positive_number(count):
    with pytest.raises(LaunchError, match=r"kernel k: workers must be an integer >= 1, got"):
        run(OWN, count)

"""Launches that a graph captures: dependent within a run of ours, serial elsewhere."""

from types import SimpleNamespace

import pytest

from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.gpu import CudaDevice
from tilewright.runtime.gpu.captures import Captures
from tilewright.runtime.gpu.driver import Driver

FUNCTION = ("function", 0xC0)


def chain(*functions):
    """The last node of launches, one after the other."""
    nodes = []
    for function in functions:
        nodes = [(function, nodes)]
    return nodes


OTHERS, COPY = ("another's", 0xC0), None
RUN = chain(OTHERS, FUNCTION, FUNCTION)


@pytest.fixture
def captures(h200):
    h200.contexts.append(0xC0)
    h200.captures[5] = 71
    return Captures(Driver(h200), 0xC0)


def test_a_capture_has_its_number_and_a_stream_that_runs_has_none(captures):
    assert (captures.number("kernel f", 5), captures.number("kernel f", 6)) == (71, 0)
    assert captures.capturing("kernel f", 5)
    assert not captures.capturing("kernel f", 6)


@pytest.mark.parametrize(
    ("in_front", "is_run"),
    [
        ([], False),
        (chain(FUNCTION), False),
        (chain(OTHERS, FUNCTION), False),
        (chain(FUNCTION, OTHERS, FUNCTION), False),
        (chain(FUNCTION, COPY, FUNCTION), False),
        (chain(FUNCTION, FUNCTION, OTHERS), False),
        (chain(FUNCTION, FUNCTION), True),
        (RUN, True),
        (chain(*[FUNCTION] * 9), True),
        (RUN + RUN, True),
        (RUN + chain(FUNCTION, OTHERS), False),
        ([(FUNCTION, RUN + chain(OTHERS))], False),
        ([(FUNCTION, RUN * 4)], True),
        ([(FUNCTION, RUN * 8)], False),
    ],
)
def test_a_launch_is_within_a_run_behind_two_of_ours_and_nothing_else(
    captures, h200, in_front, is_run
):
    h200.in_front = in_front
    assert captures.within_a_run(5, {FUNCTION}) is is_run


@pytest.mark.parametrize(
    "call",
    [
        *("cuStreamGetCaptureInfo", "cuGraphNodeGetType"),
        *("cuGraphKernelNodeGetParams", "cuGraphNodeGetDependencies"),
    ],
)
def test_a_driver_that_does_not_say_what_is_in_front_leaves_a_launch_serial(captures, h200, call):
    h200.in_front, h200.failing[call] = RUN, 1
    assert not captures.within_a_run(5, {FUNCTION})


def test_a_thread_without_a_context_learns_of_the_capture_all_the_same(captures, h200):
    h200.contexts.clear()
    h200.failing["cuStreamIsCapturing"] = 201
    assert not captures.capturing("kernel f", 5)
    assert h200.arguments("cuCtxPushCurrent") == [(0xC0,)]


@pytest.fixture
def launched(h200, gpu_array, manifest, ptx, cubin, monkeypatch):
    """launched(waits, stream): whether a launch of a kernel on torch's stream is dependent."""
    arrays = [
        gpu_array((6, 16), (16, 1)), gpu_array((4, 16), (1, 4)), gpu_array((6, 4), (4, 1), "f32"),
    ]  # fmt: skip
    programs, current = {}, SimpleNamespace(cuda_stream=0)
    for waits in (False, True):
        schedule = {**manifest["schedule"], "programmatic_dependent_launch": waits}
        changed = {**manifest, "target": "sm_90a", "schedule": schedule}
        bundle = Bundle(seal(changed, ptx, cubin), ptx, cubin)
        programs[waits] = CudaDevice(driver=Driver(h200)).open(bundle, 0)
    h200.contexts.append(0xC0)
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.current_stream", lambda index: current)

    def launch(waits, stream, named=None):
        current.cuda_stream = stream
        programs[waits].enqueue(arrays, named)
        config = h200.arguments("cuLaunchKernelEx")[-1][0]
        assert config.hStream == stream
        return [each.id for each in config.attrs] == [6]

    return launch


def test_a_captured_launch_is_dependent_only_within_a_run_of_ours(launched, h200):
    assert launched(True, 5)
    h200.captures[5] = 71
    found = []
    for h200.in_front in ([], RUN, chain(OTHERS), chain(FUNCTION, COPY), RUN):
        found.append(launched(True, 5))
    assert found == [False, True, False, False, True]
    assert launched(True, 6), "no graph captures the other stream"
    del h200.captures[5]
    h200.in_front = chain(OTHERS)
    assert launched(True, 5), "what is in front on a stream that runs is not known"


def test_a_launch_on_a_stream_that_is_named_is_dependent_in_a_graph_too(launched, h200):
    h200.captures[5], h200.in_front = 71, chain(OTHERS)
    assert launched(True, 5, named=5)
    assert not launched(True, 5)


def test_a_kernel_that_does_not_wait_is_never_dependent_and_nothing_is_asked(launched, h200):
    h200.captures[5], h200.in_front = 71, RUN
    assert not launched(False, 5)
    assert "cuStreamIsCapturing" not in h200.names()

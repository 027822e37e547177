"""Workspaces on a driver that records: who shares one, and what is cleared."""

import threading

import pytest

from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.gpu import CudaDevice
from tilewright.runtime.gpu.captures import Captures
from tilewright.runtime.gpu.driver import Driver
from tilewright.runtime.gpu.workspaces import PER_THREAD, Workspaces

SUMS, WORDS = (3 << 20, False), (64, True)


@pytest.fixture
def workspaces(h200):
    h200.contexts.append(0xC0)
    return Workspaces(Captures(Driver(h200), 0xC0), 0)


def find(workspaces, stream, *needs):
    return workspaces.find("kernel f", needs or (SUMS, WORDS), stream)


def test_launches_of_one_stream_share_memory_and_others_have_their_own(workspaces):
    first = find(workspaces, 5)
    assert find(workspaces, 5) == first
    other = find(workspaces, 6)
    assert not set(first) & set(other)


def test_memory_of_a_stream_is_outgrown_once(workspaces, h200):
    small = find(workspaces, 5, SUMS)
    large = find(workspaces, 5, (5 << 20, False))
    assert large != small
    assert find(workspaces, 5, SUMS) == find(workspaces, 5, (8 << 20, False)) == large
    assert [size for (size,) in h200.arguments("cuMemAlloc")] == [4 << 20, 8 << 20]


def test_only_words_that_must_be_zero_are_cleared_and_only_once(workspaces, h200):
    addresses = {find(workspaces, stream)[1] for stream in (5, 6, 5, 7)}
    assert len(addresses) == 3
    assert min(addresses) % 256 == 0
    ((start, value, size, _),) = h200.arguments("cuMemsetD8Async")
    assert (value, size) == (0, 1 << 20)
    assert all(start <= each <= start + size - WORDS[0] for each in addresses)


def test_each_capture_of_a_stream_has_memory_of_its_own(workspaces, h200):
    alone = find(workspaces, 5)
    h200.captures[5] = 71
    captured = find(workspaces, 5)
    assert find(workspaces, 5) == captured
    h200.captures[5] = 72
    again = find(workspaces, 5)
    assert len({*alone, *captured, *again}) == 6
    modes = [mode for (mode,) in h200.arguments("cuThreadExchangeStreamCaptureMode")]
    assert modes.count(2) == len(modes) // 2, "allocations pass while a stream is captured"


def test_the_stream_of_each_thread_has_memory_of_its_own(workspaces, h200):
    found = [find(workspaces, PER_THREAD)]

    def look():
        h200.contexts.append(0xC0)
        found.append(find(workspaces, PER_THREAD))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert not set(found[0]) & set(found[1])


def test_a_launch_passes_the_memory_of_its_stream(b200, gpu_array, manifest, ptx, cubin):
    told = [
        {"kind": "workspace", "tile_bytes": 1024, "start": "any"},
        {"kind": "workspace", "tile_bytes": 4, "start": "zero"},
    ]
    tiles = manifest["grid"][0] * manifest["grid"][1]
    changed = manifest | {
        "parameters": [*manifest["parameters"], *told],
        "workspace_bytes": 1028 * tiles,
    }
    bundle = Bundle(seal(changed, ptx, cubin), ptx, cubin)
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    arrays = [
        gpu_array((6, 16), (16, 1)), gpu_array((4, 16), (1, 4)), gpu_array((6, 4), (4, 1), "f32"),
    ]  # fmt: skip
    b200.contexts.append(0xC0)
    for stream in (5, 6, 5):
        program.enqueue(arrays, stream)
    tables = [arguments[2] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert tables[0] == tables[2] != tables[1]
    (key, arguments), _ = program._arguments.items()
    assert [each.value for each in arguments.values[-2:]] == list(key[-2:])

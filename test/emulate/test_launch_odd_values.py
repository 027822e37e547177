"""Every entry of a launch file, replaced by every odd value: refused or run, never a crash."""

import copy
import itertools
import json

import pytest

from tilewright.runtime.emulator import LaunchError, Trap
from tilewright.runtime.launch_files.options import RunOptions
from tilewright.runtime.launch_files.running import run_once

PTX = """.visible .entry k(.param .u64 p, .param .align 64 .b8 s[192], .param .f32 f)
{ .reg .b32 %r; ret; }"""
LAUNCH = {
    "entry": "k",
    "grid": [2, 1],
    "cluster": [1],
    "block": [32],
    "shared_bytes": 64,
    "tensors": [
        {
            "name": "a",
            "role": "input",
            "dtype": "f16",
            "shape": [8, 8],
            "strides": [16, 1],
            "align": 64,
            "offset_bytes": 16,
            "contents": {"random": 1, "distribution": "uniform", "low": 0, "high": 2},
        },
        {
            "name": "b",
            "role": "inout",
            "dtype": "u8",
            "shape": [4],
            "contents": {"ramp": 0, "step": 1, "modulo": 3},
        },
        {"name": "c", "role": "inout", "dtype": "e2m1", "shape": [5], "contents": {"constant": 1}},
        {"name": "d", "role": "output", "dtype": "s64", "shape": [2]},
    ],
    "tensor_maps": [
        {
            "name": "m",
            "tensor": "a",
            "dtype": "f16",
            "offset_bytes": 32,
            "dims": [8, 4],
            "strides_bytes": [32],
            "box": [8, 2],
            "element_strides": [1, 1],
            "interleave": "none",
            "swizzle": "none",
            "l2_promotion": "none",
            "oob_fill": "zero",
        }
    ],
    "parameters": [
        {"pointer": "b", "offset_bytes": 1},
        {
            "struct": [
                {"at": 0, "tensor_map": "m"},
                {"at": 128, "scalar": 3, "type": "s16"},
                {"at": 130, "hex": "ff"},
                {"at": 136, "pointer_array": ["c", "d"]},
            ],
            "size_bytes": 192,
        },
        {"scalar": 1.5, "type": "f32"},
    ],
}
ODD = [
    None, True, -1, 0, 1, 3, 2**16, 2**40, 2**63, 10**400, 0.5, float("nan"), float("inf"), "",
    "nan", "none", "a", "\0", "é" * 99, [], [0], [1], [1, 2, 3, 4], [[1]], {}, {"constant": 300},
    {"file": "/"}, {"file": "\0"}, {"pointer": "a"}, {"hex": "é"},
]  # fmt: skip


def paths_in(value, path=()):
    """The path of every entry below the top."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_in(item, (*path, key))


def bent(path, value):
    """The launch with another value at a path."""
    launch = copy.deepcopy(LAUNCH)
    holder = launch
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return launch


@pytest.fixture
def attempt(tmp_path, header):
    """attempt(launch) runs it; True when it ran, False when it was refused in one line."""
    (tmp_path / "kernel.ptx").write_text(header + PTX)

    def call(launch) -> bool:
        (tmp_path / "launch.json").write_text(json.dumps(launch))
        try:
            run_once(tmp_path / "kernel.ptx", tmp_path / "launch.json", 0, RunOptions(1000))
        except Trap:
            return True
        except LaunchError as error:
            assert "\n" not in str(error) and f"{tmp_path}/launch.json: " in str(error)
            return False
        return True

    return call


def test_the_launch_that_is_bent_runs(attempt):
    assert attempt(LAUNCH)


@pytest.mark.parametrize("part", list(LAUNCH))
def test_an_odd_value_is_refused_or_run(part, attempt):
    places = [path for path in paths_in(LAUNCH) if path[0] == part]
    pairs = list(itertools.product(places, ODD))[:: 1 if len(places) < 9 else 3]
    ran = sum(attempt(bent(path, odd)) for path, odd in pairs)
    assert ran < len(pairs) / 2

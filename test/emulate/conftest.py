"""Small kernels and launch files, and running them."""

import copy
import json

import pytest

from tilewright.runtime import run_launch_file

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
COPY = (
    HEADER
    + """.visible .entry copy(.param .u64 from, .param .u64 to, .param .u32 count) {
  .reg .pred %p; .reg .b16 %h; .reg .b32 %r<3>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
next:
  setp.ge.u32 %p, %r2, %r1;
  @%p bra done;
  cvt.u64.u32 %rd3, %r2;
  add.u64 %rd0, %rd1, %rd3; ld.global.u8 %h, [%rd0];
  add.u64 %rd0, %rd2, %rd3; st.global.u8 [%rd0], %h;
  add.u32 %r2, %r2, 32;
  bra next;
done:
  ret; }"""
)
"""Copies `count` bytes."""


def copy_launch(tensor: dict, size_bytes: int) -> dict:
    """The bytes of a tensor, copied by one warp into the output `bytes`."""
    return {
        "entry": "copy",
        "grid": [1],
        "block": [32],
        "tensors": [
            tensor,
            {"name": "bytes", "role": "output", "dtype": "u8", "shape": [size_bytes]},
        ],
        "parameters": [
            {"pointer": tensor["name"]},
            {"pointer": "bytes"},
            {"scalar": size_bytes, "type": "u32"},
        ],
    }


@pytest.fixture
def header():
    """The directives that start a module."""
    return HEADER


@pytest.fixture
def files(tmp_path):
    """files(ptx, launch) writes both and returns their paths."""

    def write(ptx: str, launch: dict | str):
        kernel, description = tmp_path / "kernel.ptx", tmp_path / "launch.json"
        kernel.write_text(ptx)
        description.write_text(launch if isinstance(launch, str) else json.dumps(launch))
        return kernel, description

    return write


@pytest.fixture
def run(files):
    """run(ptx, launch) writes both files, runs them in this process and returns the result."""
    return lambda ptx, launch, **options: run_launch_file(*files(ptx, launch), **options)


@pytest.fixture
def memory_of(run):
    """memory_of(tensor, bytes): the first bytes that a kernel sees in a tensor."""

    def read(tensor: dict, size_bytes: int) -> bytes:
        return run(COPY, copy_launch(tensor, size_bytes)).outputs["bytes"].tobytes()

    return read


@pytest.fixture
def copying():
    """The copying kernel, and a launch of it that tests may bend."""
    tensor = {
        "name": "a",
        "role": "input",
        "dtype": "s16",
        "shape": [3, 4],
        "contents": {"ramp": 0},
    }
    return COPY, copy.deepcopy(copy_launch(tensor, 24))

"""A small manifest, complete and consistent, that tests bend."""

import copy

import pytest

PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry copy(
  .param .align 64 .b8 copy_param_0[128],
  .param .u64 .ptr .global .align 1 copy_param_1,
  .param .u64 copy_param_2
)
.reqntid 128, 1, 1
{
  ret;
}
"""
CUBIN = b"\x7fELF not really"

MANIFEST = {
    "spec": None,
    "target": "sm_100a",
    "pipeline": "tiling",
    "schedule": {"tile": [128, 128, 64]},
    "entry": "copy",
    "grid": [1, 1, 1],
    "cluster": [1, 1, 1],
    "block": [128, 1, 1],
    "dynamic_shared_bytes": 4096,
    "workspace_bytes": 0,
    "tensors": [
        {"name": "a", "role": "input", "dtype": "bf16", "shape": [6, 16], "strides": [16, 1]},
        {"name": "b", "role": "input", "dtype": "bf16", "shape": [4, 16], "strides": [1, 4]},
        {"name": "c", "role": "output", "dtype": "f32", "shape": [6, 4], "strides": [4, 1]},
    ],
    "parameters": [
        {
            "kind": "tensor_map",
            "tensor": "a",
            "dtype": "bf16",
            "dims": [16, 6],
            "strides_bytes": [32],
            "box": [8, 6],
            "element_strides": [1, 1],
            "interleave": "none",
            "swizzle": "none",
            "l2_promotion": "none",
            "oob_fill": "zero",
        },
        {"kind": "pointer", "tensor": "b", "alignment_bytes": 2},
        {"kind": "pointer", "tensor": "c", "alignment_bytes": 32},
    ],
    "epilogue": {
        "arguments": [{"tensor": None, "axes": ["m", "n"]}],
        "operations": [],
        "result": 0,
    },
    "resources": {
        "registers": 40,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "static_shared_bytes": 16,
    },
    "tools": {"tilewright": "0.1.0"},
}


@pytest.fixture
def manifest():
    """A fresh copy of the small manifest, not sealed."""
    return copy.deepcopy(MANIFEST)


@pytest.fixture
def ptx():
    return PTX


@pytest.fixture
def cubin():
    return CUBIN

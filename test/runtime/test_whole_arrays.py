"""What the emulator tells of parts of a bundle's operands and scales that nobody read."""

import re

import numpy as np
import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime import Bundle
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.whole_arrays import read_whole
from tilewright.runtime.operands.tensors import bind_all
from tilewright.tools.runs.inputs import make_tensors

RING = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
GROUPS = (
    MatmulSpec(90, 24, 136, groups=3, c_dtype="f32"),
    "sm_90a",
    "tiling{tile=64x32x64},tma-insertion,swizzle-selection",
)
NVFP4 = MatmulSpec(136, 32, 544, "nvfp4", "nvfp4"), "sm_100a", f"tiling{{tile=128x32x256}},{RING}"
WEIGHTS = (
    MatmulSpec(20, 40, 160, "bf16", "s4", "bf16", group_size=32, scale_dtype="bf16"),
    "sm_80",
    "tiling{tile=64x32x64},copy-insertion,swizzle-selection,pipelining{stages=3}",
)
BLOCKWISE = (
    MatmulSpec(64, 40, 656, "e4m3", "e4m3", "f32", a_scales="1x128", b_scales="128x128"),
    "sm_90a",
    f"tiling{{tile=64x32x128}},{RING}",
)
SPLIT = (
    MatmulSpec(72, 40, 320),
    "sm_90a",
    f"tiling{{tile=64x32x64}},split-k{{parts=3 over=grid}},{RING}",
)


def bundle_of(kernel):
    spec, chip, pipeline = kernel
    made = compile_matmul(spec, target=chip, pipeline=pipeline, until="ptx")
    return Bundle(made.manifest, made.ptx, b"")


def told(bundle, ptx=None, **values):
    tensors = make_tensors(bundle.manifest, 0) | values
    changed = Bundle(bundle.manifest, ptx or bundle.ptx, b"")
    return [str(each) for each in open_device("emulator").launch(changed, tensors).warnings]


def one_step_less(ptx, steps):
    """The text whose loops along K of all roles end a step early."""
    changed = re.sub(rf"(setp.ne.b64 \t%p\d+, %rd\d+, ){steps};", rf"\g<1>{steps - 1};", ptx)
    assert changed != ptx
    return changed


@pytest.mark.parametrize("kernel", [GROUPS, NVFP4, WEIGHTS, BLOCKWISE, SPLIT])
def test_a_right_kernel_reads_all_that_is_needed(kernel):
    assert told(bundle_of(kernel)) == []


@pytest.mark.parametrize("ends", [[0, 40, 70], [30, 30, 90], [0, 0, 0], [50, 20, 95], [90, 90, 90]])
def test_groups_without_rows_and_rows_behind_the_last_group_need_no_reader(ends):
    offsets = torch.tensor(ends, dtype=torch.int32)
    assert told(bundle_of(GROUPS), offsets=offsets) == []


def test_a_loop_along_k_that_ends_early_is_told_of_groups_that_have_rows():
    bundle = bundle_of(GROUPS)
    offsets = torch.tensor([0, 40, 70], dtype=torch.int32)
    of_a, of_b = told(bundle, one_step_less(bundle.ptx, 3), offsets=offsets)
    assert of_a.startswith("unread-input: 560 of 9520 elements, [0, 128] first, of parameter 0")
    assert of_b.startswith("unread-input: 192 of 3264 elements, [0, 128] first, of parameter 1")


def test_scales_of_a_step_that_nobody_reads_are_told():
    bundle = bundle_of(NVFP4)
    changed = one_step_less(bundle.ptx, 3)
    assert [each.split(" first")[0] for each in told(bundle, changed)] == [
        "unread-input: 2176 of 36992 elements, [0, 256]",
        "unread-input: 512 of 8704 elements, [0, 256]",
        "unread-input: 2 of 18 elements, [0, 8, 0, 0, 0]",
        "unread-input: 1 of 9 elements, [0, 8, 0, 0, 0]",
    ]


@pytest.mark.parametrize(("kernel", "shapes"), [
    (GROUPS, [(90, 136), (3, 24, 136)]),
    (NVFP4, [(136, 272), (32, 272), (2, 9, 1, 1, 1), (1, 9, 1, 1, 1)]),
    (WEIGHTS, [(20, 160), (40, 80), (40, 5)]),
    (BLOCKWISE, [(64, 656), (40, 656), (6, 64), (1, 6)]),
])  # fmt: skip
def test_operands_and_their_scales_are_read_whole(kernel, shapes):
    manifest = bundle_of(kernel).manifest
    tensors = make_tensors(manifest, 0)
    if "offsets" in tensors:
        tensors["offsets"] = torch.tensor([20, 50, 90], dtype=torch.int32)
    needed = read_whole(manifest, bind_all(manifest, tensors))
    assert [each.shape for each in needed] == shapes
    assert all(isinstance(each, np.ndarray) for each in needed)

"""An operand's rows and K lie along different dimensions of what a tensor copy has written.

Boxes are placed by the swizzles of PTX ISA §5.5.7, operands by the canonical layouts of §9.7.16.5
and the strides that each row names.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.checks.box_axes import share_a_dimension
from tilewright.runtime.emulator.copies.box_copy import Box, box_plan
from tilewright.runtime.emulator.machine import swizzle
from tilewright.runtime.emulator.tensor.descriptor import SharedDescriptor
from tilewright.runtime.emulator.tensor.tensor_core import gather_plan, operand_layout

START = 0x2000
K_MAJOR, MN_MAJOR = False, True


def judged(mode, box: tuple[int, ...], operand: tuple[int, int, int, int], transposed: bool):
    """box: bytes of a row, rows along the other dimensions; operand: rows, K of 16-bit elements,
    leading and stride byte offset."""
    rows, k, leading, stride = operand
    count = int(np.prod(box[1:]))
    filled = box_plan(mode, box[0], count, START % 1024).words + START // 8
    starts = np.full(1 << 16, -1)
    starts[filled] = START
    descriptor = SharedDescriptor(START, leading, stride, 0, mode)
    layout = operand_layout(descriptor, rows, k, 16, transposed, "A")
    words = gather_plan(layout).words + START // 8
    return share_a_dimension(words, starts[words], Box(mode, 0, 1, False, shape=box))


RIGHT = {
    "K-major, 128B": (swizzle.B128, (128, 64), (64, 16, 16, 1024), K_MAJOR),
    "K-major, 64B": (swizzle.B64, (64, 64), (64, 16, 16, 512), K_MAJOR),
    "K-major, 32B": (swizzle.B32, (32, 64), (64, 16, 16, 256), K_MAJOR),
    "K-major, rows of two dimensions": (swizzle.B128, (128, 8, 8), (64, 16, 16, 1024), K_MAJOR),
    "K-major without a swizzle, a chunk of K a dimension": (
        swizzle.NONE, (16, 64, 8), (64, 16, 1024, 128), K_MAJOR,
    ),
    "MN-major, 128B": (swizzle.B128, (128, 64), (64, 16, 8192, 1024), MN_MAJOR),
    "MN-major, 128B, N of two dimensions": (
        swizzle.B128, (128, 64, 2), (128, 16, 8192, 1024), MN_MAJOR,
    ),
    "MN-major, 32B": (swizzle.B32, (32, 64, 4), (64, 16, 2048, 256), MN_MAJOR),
    "MN-major without a swizzle": (swizzle.NONE, (16, 64, 8), (64, 16, 128, 1024), MN_MAJOR),
}  # fmt: skip
WRONG = {
    "strides exchanged, K-major without a swizzle": (
        swizzle.NONE, (16, 128, 16), (128, 16, 128, 2048), K_MAJOR,
    ),
    "strides exchanged, MN-major, 64B": (
        swizzle.B64, (64, 64, 4), (128, 16, 512, 4096), MN_MAJOR,
    ),
    "a stride that is no multiple of the pattern": (
        swizzle.B128, (128, 128), (64, 16, 16, 1056), K_MAJOR,
    ),
    "K-major elements read as MN-major, without a swizzle": (
        swizzle.NONE, (16, 64, 8), (64, 16, 1024, 128), MN_MAJOR,
    ),
    "MN-major elements read as K-major, without a swizzle": (
        swizzle.NONE, (16, 64, 8), (64, 16, 128, 1024), K_MAJOR,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_canonical_layout_moves_along_different_dimensions(name):
    assert not judged(*RIGHT[name])


@pytest.mark.parametrize("name", WRONG)
def test_another_one_is_seen(name):
    assert judged(*WRONG[name])


def test_boxes_behind_one_another_are_judged_one_by_one():
    """K-major without a swizzle, a box for each chunk of K: with the strides exchanged, a box holds
    the rows of eight and all of K"""
    starts, box = np.full(1 << 16, -1), Box(swizzle.NONE, 0, 1, False, shape=(16, 128))
    for chunk in range(16):
        at = START + chunk * 2048
        starts[at // 8 : at // 8 + 256] = at
    found = []
    for leading, stride in ((2048, 128), (128, 2048)):
        descriptor = SharedDescriptor(START, leading, stride, 0, swizzle.NONE)
        layout = operand_layout(descriptor, 128, 16, 16, False, "A")
        words = gather_plan(layout).words + START // 8
        found.append(share_a_dimension(words, starts[words], box))
    assert found == [False, True]

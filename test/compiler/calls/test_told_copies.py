"""Operands that a function copies: each is told of, whatever the function, but for small ones."""

import numpy as np
import pytest
import torch

from tilewright import (
    CompileError,
    grouped_mm,
    matmul,
    scaled_grouped_mm,
    scaled_mm,
    weight_only_mm,
)
from tilewright.runtime.errors import CopyWarning
from tilewright.runtime.operands import copies

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
M, N, K = 16, 32, 64
ENDS = torch.tensor([4, M], dtype=torch.int32)
E8M0 = torch.float8_e8m0fnu


def integers(*shape, dtype=torch.bfloat16):
    return torch.randint(-3, 4, shape).to(dtype)


def apart(tensor):
    """The same numbers with as many others between them."""
    beside = torch.stack(
        [tensor.view(torch.uint8 if tensor.itemsize == 1 else tensor.dtype)] * 2, -1
    )
    return beside.view(torch.uint8).view(beside.dtype)[..., 0].view(tensor.dtype)


A, STACK = integers(M, K), integers(2, K, N)
NARROW, SCALES = integers(N, K, dtype=torch.int8), torch.ones(N, 2)
RESIDUAL = integers(M, N, dtype=torch.float32)
EIGHT, BLOCKS = A.to(torch.float8_e4m3fn), torch.ones(M, 2).to(E8M0)
EIGHT_B, BLOCKS_B = integers(N, K).to(torch.float8_e4m3fn), torch.ones(N, 2).to(E8M0)


def of_blocks(a, of_a, grouped):
    kind, b, of_b = "BlockWise1x32", EIGHT_B, BLOCKS_B
    if not grouped:
        return scaled_mm(a, b.T, of_a, kind, of_b, kind)
    stacks = torch.stack([b.view(torch.uint8)] * 2).view(b.dtype), torch.ones(2, N, 2).to(E8M0)
    return scaled_grouped_mm(a, stacks[0].mT, of_a, kind, stacks[1], kind, offs=ENDS)


CASES = {
    "rows of groups": (lambda a: grouped_mm(a, STACK, offs=ENDS), A, "grouped_mm: mat_a"),
    "narrow": (lambda a: weight_only_mm(a, NARROW), A, "weight_only_mm: a"),
    "scales of narrow": (
        lambda scales: weight_only_mm(A, NARROW, scales),
        SCALES,
        "weight_only_mm: scales",
    ),
    "beside narrow": (
        lambda other: weight_only_mm(A, NARROW, epilogue=torch.add, operands=[other]),
        RESIDUAL,
        r"weight_only_mm: operands\[0\]",
    ),
    "blocks": (lambda scales: of_blocks(EIGHT, scales, False), BLOCKS, "scaled_mm: scale_a"),
    "blocks of groups": (
        lambda scales: of_blocks(EIGHT, scales, True),
        BLOCKS,
        "scaled_grouped_mm: scale_a",
    ),
    "rows of blocks": (
        lambda a: of_blocks(a, BLOCKS, True),
        EIGHT,
        "scaled_grouped_mm: mat_a",
    ),
    "spread": (
        lambda other: matmul(A.unflatten(0, (4, 4)), A, epilogue=torch.add, operands=[other]),
        integers(4, 1, M, dtype=torch.float32),
        r"matmul: operands\[0\]",
    ),
    "mask": (
        lambda mask: matmul(A, A, epilogue=lambda x, q: torch.where(q, x, 0.0), operands=[mask]),
        integers(M, M) > 0,
        r"matmul: operands\[0\]",
    ),
    "dims": (lambda a: matmul(a.unflatten(0, (4, 4)).transpose(0, 1), A), A, "matmul: a"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_copy_is_told_of_and_gives_what_the_tensor_does(name, monkeypatch):
    monkeypatch.setattr(copies, "SILENT_BYTES", 0)
    call, tensor, told = CASES[name]
    wanted = call(tensor)
    with pytest.warns(CopyWarning, match=rf"{told} \[.*\] is copied in each such call"):
        found = call(tensor if name in ("dims", "spread", "mask") else apart(tensor))
    assert found.equal(wanted)


def test_operands_of_numpy_are_taken_beside_narrow_weights():
    wanted = weight_only_mm(A, NARROW, epilogue=torch.add, operands=[RESIDUAL])
    given = [RESIDUAL.numpy()]
    assert weight_only_mm(A, NARROW, epilogue=torch.add, operands=given).equal(wanted)
    with pytest.raises(CompileError, match="must be one number or one for each column where m is"):
        weight_only_mm(A, NARROW, epilogue=torch.add, operands=[np.ones((M, 1))], m="dynamic")

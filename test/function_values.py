"""Functions of an epilogue on every number of a type, several by one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilewright

SIDE = 256
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
BITS = {BF16: (8, -126), F16: (11, -14)}
"""Significant bits, and the exponent of the smallest normal number."""


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Every one of 16 bits; of f32 those of bf16, and others about 1 and about 0."""
    every = torch.arange(0, 2**16, dtype=torch.int32).to(torch.int16)
    if dtype != F32:
        return every.view(dtype).reshape(-1, SIDE)
    one = torch.tensor(1.0).view(torch.int32)
    near = (one + torch.arange(-(2**12), 2**12, dtype=torch.int32)).view(F32)
    edges = torch.cat([torch.linspace(-0.5, 3, 2**13), near, near - 1, torch.rand(2**13) * 2**-125])
    return torch.cat([every.view(BF16).float(), edges]).reshape(-1, SIDE)


def computed(
    functions: tuple[Callable[..., Any], ...], x: torch.Tensor, dtype: torch.dtype, **how: Any
) -> list[torch.Tensor]:
    """What a kernel makes of each x, as a residual that is chosen where the product is 0."""
    zeros = torch.zeros(SIDE, 64, dtype=BF16)
    rows = zeros.repeat(-(-len(x) // SIDE), 1)[: len(x)]

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        value = torch.where(acc == 0, x.float(), acc)
        return tuple(each(value).to(dtype) for each in functions)

    how = {"pipeline": "tiling{tile=64x64x64}", **how}
    found = tilewright.matmul(rows, zeros, out_dtype=dtype, epilogue=epilogue, operands=[x], **how)
    return list(found)


def check(got: torch.Tensor, wanted: torch.Tensor, allowed: torch.Tensor) -> None:
    """Equal where the result is no number or infinite, elsewhere as near as is allowed."""
    finite = wanted.isfinite()
    assert torch.equal(got.isnan(), wanted.isnan())
    assert torch.equal(got[wanted.isinf()].double(), wanted[wanted.isinf()])
    error = ((got.double() - wanted).abs() / allowed)[finite]
    assert error.max() <= 1, wanted[finite][error.argmax()]

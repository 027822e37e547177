"""Logarithms and roundings of an epilogue, of every number of 16 bits and about the zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tilewright
from tilewright.runtime.emulator.instructions.values import approximations

SIDE = 256
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
BITS = {BF16: (8, -126), F16: (11, -14)}
"""Significant bits, and the exponent of the smallest normal number."""
LOGARITHMS = (torch.log, torch.log2, torch.log10, torch.log1p)
ROUNDINGS = (torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac)


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Every one of 16 bits; of f32 those of bf16, and others about 1 and about 0."""
    every = torch.arange(0, 2**16, dtype=torch.int32).to(torch.int16)
    if dtype != F32:
        return every.view(dtype).reshape(-1, SIDE)
    one = torch.tensor(1.0).view(torch.int32)
    near = (one + torch.arange(-(2**12), 2**12, dtype=torch.int32)).view(F32)
    edges = torch.cat([torch.linspace(-0.5, 3, 2**13), near, near - 1, torch.rand(2**13) * 2**-125])
    return torch.cat([every.view(BF16).float(), edges]).reshape(-1, SIDE)


def taken_by_log1p(dtype: torch.dtype) -> torch.Tensor:
    """All numbers above -2, and a share of those below, of which no logarithm is a number."""
    x = numbers(dtype).flatten()
    below = x <= -2
    x = torch.cat([x[~below], x[below][::64]])
    return x[: len(x) // SIDE * SIDE].reshape(-1, SIDE)


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


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "dtype, offset, target",
    [(BF16, 1.0, "sm_90a"), (BF16, -1.0, "sm_100a"), (F16, -1.0, "sm_90a"), (F16, 1.0, "sm_100a")],
)
def test_fast_logarithms_are_within_a_unit_of_every_number(
    dtype: torch.dtype, offset: float, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approximations, "offset", offset)
    x, (bits, least) = taken_by_log1p(dtype), BITS[dtype]
    for function, got in zip(
        LOGARITHMS, computed(LOGARITHMS, x, dtype, target=target, math="fast"), strict=True
    ):
        wanted = function(x.double())
        exponent = (torch.frexp(wanted.nan_to_num(1, 1, 1))[1] - 1).clamp(min=least)
        check(got, wanted, torch.ldexp(torch.ones_like(wanted), exponent - bits + 1))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("offset, target", [(1.0, "sm_90a"), (-1.0, "sm_90a"), (1.0, "sm_100a")])
def test_exact_logarithms_keep_the_digits_of_float32_also_near_their_zero(
    offset: float, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of subnormal numbers."""
    monkeypatch.setattr(approximations, "offset", offset)
    x = taken_by_log1p(F32)
    for function, got in zip(LOGARITHMS, computed(LOGARITHMS, x, F32, target=target), strict=True):
        wanted = function(x.double())
        check(got, wanted, 2**-21 * wanted.abs() + 2.0**-126)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("dtype, target", [(BF16, "sm_90a"), (F16, "sm_100a"), (F32, "sm_90a")])
def test_roundings_are_those_of_torch(dtype: torch.dtype, target: str) -> None:
    x = numbers(dtype)
    halves = torch.arange(-2 * SIDE, 2 * SIDE).reshape(-1, SIDE) / 2
    x = torch.cat([x, halves.to(dtype)])
    for function, got in zip(ROUNDINGS, computed(ROUNDINGS, x, dtype, target=target), strict=True):
        assert torch.equal(got.nan_to_num(0.125), function(x).nan_to_num(0.125)), function

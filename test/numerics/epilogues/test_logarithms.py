"""Logarithms and roundings of an epilogue, of every number of 16 bits and about the zero."""

from __future__ import annotations

import pytest
import torch
from function_values import BF16, BITS, F16, F32, SIDE, check, computed, numbers

from tilewright.runtime.emulator.instructions.values import approximations

LOGARITHMS = (torch.log, torch.log2, torch.log10, torch.log1p)
ROUNDINGS = (torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac)


def taken_by_log1p(dtype: torch.dtype) -> torch.Tensor:
    """All numbers above -2, and a share of those below, of which no logarithm is a number."""
    x = numbers(dtype).flatten()
    below = x <= -2
    x = torch.cat([x[~below], x[below][::64]])
    return x[: len(x) // SIDE * SIDE].reshape(-1, SIDE)


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

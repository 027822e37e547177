"""How far the polynomials under the tails of the normal distribution are off."""

import math

import pytest
import torch

from tilewright.passes.lowering.epilogue.normal_tails import NORMAL, SLOPE, Tail
from tilewright.passes.lowering.epilogue.slopes import ROOT


def relative_error(tail: Tail, wanted: torch.Tensor, v: torch.Tensor) -> float:
    """The largest of a polynomial of 1 / (v + q)."""
    nearby = 1 / (v + tail.pole)
    made = sum(each * nearby**power for power, each in enumerate(tail.powers))
    return float((made / wanted - 1).abs().max())


def numbers(end: float) -> torch.Tensor:
    return torch.linspace(0, end, 100_001, dtype=torch.float64)


@pytest.mark.parametrize(("coarse", "end", "bits"), [("bf16", 13.7, 10.83), ("f16", 6.2, 14.37)])
def test_what_is_left_of_the_distribution_without_its_density(coarse, end, bits):
    v = numbers(end)
    wanted = torch.special.erfcx(v / math.sqrt(2)) / 2
    assert relative_error(NORMAL[coarse], wanted, v) < 2**-bits


@pytest.mark.parametrize(("coarse", "bits"), [("bf16", 10.89), ("f16", 13.38)])
def test_what_is_left_of_the_slope_without_its_density_and_zero(coarse, bits):
    v = numbers(13.8)
    v = v[(v - sum(ROOT)).abs() > 1e-4]  # where both are almost 0
    normal = torch.special.erfcx(v / math.sqrt(2)) / 2
    wanted = (normal - v / math.sqrt(2 * math.pi)) / (sum(ROOT) - v)
    assert relative_error(SLOPE[coarse], wanted, v) < 2**-bits

"""Sines and cosines of an epilogue: of every number of bf16, and of f32 about multiples of pi/2."""

import pytest
import torch
from function_values import BF16, BITS, F32, SIDE, check, computed, numbers

from tilewright.runtime.judge.epilogue import OPERATIONS
from tilewright.runtime.judge.intervals import Interval, rounded

FUNCTIONS = torch.sin, torch.cos


def test_sines_of_every_bf16_number_are_rounded_once() -> None:
    """Far from 0 too, where a product by 2/pi in f32 would have lost the quadrant."""
    every = numbers(BF16).flatten()
    transposed = every >= 2.0**-10
    x = torch.cat(
        [every[transposed], every[~transposed][::8]]
    )  # the sign is a bit that is set behind
    x = x[: len(x) // SIDE * SIDE].reshape(-1, SIDE)
    for function, got in zip(FUNCTIONS, computed(FUNCTIONS, x, BF16, target="sm_90a"), strict=True):
        wanted, (bits, least) = function(x.double()), BITS[BF16]
        exponent = (torch.frexp(wanted.nan_to_num(1))[1] - 1).clamp(min=least)
        check(got, wanted, torch.ldexp(torch.full_like(wanted, 0.501), exponent - bits + 1))


def multiples() -> torch.Tensor:
    """The numbers of f32 about multiples of pi/2, and others up to the largest of all."""
    powers = 2 ** torch.arange(9, 62), 3 ** torch.arange(6, 39)
    turns = torch.cat([torch.arange(1, 400), *powers])
    near = (turns.double() * (torch.pi / 2)).float()
    exponents = torch.arange(0, 128, dtype=torch.float64)
    wide = (torch.linspace(1, 2, 13, dtype=torch.float64) * 2 ** exponents[:, None]).float()
    worst = torch.tensor([16367173.0 * 2**72, 1.0, 0.78539819, 0.0, -0.0])
    x = torch.cat([near, torch.nextafter(near, near * 0), wide.flatten(), worst])
    x = torch.cat([x, -x])
    return torch.nn.functional.pad(x, (0, -len(x) % SIDE), value=0.5).reshape(-1, SIDE)


def test_sines_of_f32_keep_their_digits_where_they_are_nearly_0() -> None:
    """16367173 times 2^72 is nearer to a multiple of pi/2 than any other float of 24 bits."""
    x = multiples()
    got = computed(FUNCTIONS, x, F32, target="sm_100a")
    for function, found in zip(FUNCTIONS, got, strict=True):
        wanted = function(x.double())
        check(found, wanted, 2.0**-21 * wanted.abs() + 2.0**-149)
        assert torch.equal(found[x == 0].signbit(), wanted[x == 0].signbit())


@pytest.mark.parametrize(("name", "function"), [("math.sin", torch.sin), ("math.cos", torch.cos)])
def test_the_judges_limits_hold_every_value_between(name: str, function) -> None:
    generator = torch.Generator().manual_seed(3)
    middle = torch.randn(4000, generator=generator).double() * 20
    width = torch.rand(4000, generator=generator).double() ** 4 * 8
    low, high = middle - width, middle + width
    ends = Interval(low.numpy(), middle.numpy(), high.numpy())
    found = rounded(name, OPERATIONS[name](ends), ends)
    inside = low + (high - low) * torch.linspace(0, 1, 257).double()[:, None]
    values = function(inside)
    assert (values.amin(0) >= torch.from_numpy(found.low)).all()
    assert (values.amax(0) <= torch.from_numpy(found.high)).all()
    slack = (high - low) / 256 + 1e-5
    assert (values.amin(0) - torch.from_numpy(found.low) <= slack).all(), "no wider than they are"
    assert (torch.from_numpy(found.high) - values.amax(0) <= slack).all()

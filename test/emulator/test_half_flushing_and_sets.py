""".ftz on f16 signs, minima and maxima; set on packed halves (PTX ISA §9.7.4, §9.7.7)."""

from __future__ import annotations

import numpy as np
import pytest

SUBNORMAL = 0x03FF


def halves(floats, seed: int) -> np.ndarray:
    values = floats("f16", seed)
    values[::5] = np.resize(np.array([1, 0x8001, SUBNORMAL, 0x83FF], np.uint16), len(values[::5]))
    return values


def flushed(patterns: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of the same sign."""
    numbers = patterns.view(np.float16).astype(np.float64)
    small = (numbers != 0) & (np.abs(numbers) < 2.0**-14)
    return np.where(small, patterns & 0x8000, patterns).astype(np.uint16)


@pytest.mark.parametrize("operation, sign", [("neg", "invert"), ("abs", "clear")])
def test_signs_of_flushed_halves(execute, floats, operation, sign):
    a, b = halves(floats, 1), halves(floats, 2)
    packed = b.astype(np.uint32) << 16 | a
    got = execute(f"{operation}.ftz.f16 %d, %a;", a, out=np.uint16)
    both = execute(f"{operation}.ftz.f16x2 %d, %a;", packed, out=np.uint32)
    change = (lambda x: x ^ 0x8000) if sign == "invert" else (lambda x: x & 0x7FFF)
    assert got.tolist() == change(flushed(a)).tolist()
    assert (both & 0xFFFF).tolist() == got.tolist()
    assert (both >> 16).tolist() == change(flushed(b)).tolist()


@pytest.mark.parametrize("operation", ["min", "max"])
def test_minimum_and_maximum_of_flushed_halves(execute, floats, operation):
    a, b = halves(floats, 3), halves(floats, 4)
    got = execute(f"{operation}.ftz.f16 %d, %a, %b;", a, b, out=np.uint16)
    x, y = (flushed(v).view(np.float16) for v in (a, b))
    wanted = getattr(np, f"f{operation}")(x, y)
    nan = np.isnan(x) & np.isnan(y)
    assert (got[nan] == 0x7FFF).all()
    assert np.array_equal(got.view(np.float16)[~nan], wanted[~nan])
    zeros = ~nan & (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    assert (np.signbit(got.view(np.float16)[zeros]) == (operation == "min")).all()


@pytest.mark.parametrize("compare, ordered", [("lt", True), ("gtu", False), ("ne", True)])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_set_of_packed_halves_is_one_or_zero(execute, floats, formats, type_, compare, ordered):
    parts = [floats(type_, seed) for seed in range(4)]
    a, b = (high.astype(np.uint32) << 16 | low for low, high in (parts[:2], parts[2:]))
    take = np.arange(32, dtype=np.uint32) % 3
    body = f"setp.eq.u32 %p, %c, 0; set.{compare}.and.{type_}x2.{type_}x2 %d, %a, %b, !%p;"
    got = execute(body, a, b, take, out=np.uint32)
    one = 0x3C00 if type_ == "f16" else 0x3F80
    tests = {"lt": lambda x, y: x < y, "gtu": lambda x, y: x > y, "ne": lambda x, y: x != y}
    for shift, (left, right) in ((0, (parts[0], parts[2])), (16, (parts[1], parts[3]))):
        for lane in range(32):
            x, y = (formats[type_].decode(int(side[lane])) for side in (left, right))
            nan = x != x or y != y
            wanted = not ordered if nan else tests[compare](x, y)
            found = int(got[lane]) >> shift & 0xFFFF
            assert found == (one if wanted and take[lane] else 0), (x, y)


def test_special_registers_may_be_read_as_16_bits(execute):
    got = execute("mov.u16 %d, %tid.x;", out=np.uint16)
    assert got.tolist() == list(range(32))

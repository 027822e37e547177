"""Floating-point arithmetic against exact fractions (PTX ISA §9.7.3, §9.7.4)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

NAN = math.nan
OPERATIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}


def as_float(value) -> float:
    """Only for operands that are infinite, NaN or zero: their arithmetic needs no rounding."""
    return value if isinstance(value, float) else math.copysign(1.0, value) if value else 0.0


def exact(function, values, signs):
    """The exact result of finite operands; IEEE special values otherwise."""
    finite = all(isinstance(value, Fraction) for value in values)
    try:
        return function(*values) if finite else float(function(*map(as_float, values)))
    except OverflowError:
        return NAN
    except ZeroDivisionError:
        numerator = values[0] if len(values) > 1 else Fraction(1)
        infinite = numerator != 0 and not math.isnan(numerator)
        return math.prod(signs) * math.inf if infinite else NAN


def check(form, got, wanted, mode, same_float, where):
    if isinstance(wanted, float) and math.isnan(wanted):
        assert form.is_nan(got), where
    elif wanted == 0:
        assert got & ~form.sign == 0, where
    else:
        assert same_float(form, got, form.encode(wanted, mode)), where


def signs(form, *patterns):
    return [-1 if pattern & form.sign else 1 for pattern in patterns]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_f32_and_f64_round_once_in_every_mode(
    execute, floats, formats, same_float, type_, operation, mode, seed
):
    """PTX ISA §9.7.3.3 add, §9.7.3.4 sub, §9.7.3.5 mul"""
    form = formats[type_]
    a, b = floats(type_, seed), floats(type_, seed + 10)
    got = execute(f"{operation}.{mode}.{type_} %d, %a, %b;", a, b, out=a.dtype)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        values = form.decode(x), form.decode(y)
        wanted = exact(OPERATIONS[operation], values, signs(form, x, y))
        check(form, d, wanted, mode, same_float, (values, mode))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_16_bit_arithmetic_rounds_once(
    execute, floats, formats, same_float, type_, operation, seed
):
    """PTX ISA §9.7.4.1 add, §9.7.4.2 sub, §9.7.4.3 mul"""
    form = formats[type_]
    a, b = floats(type_, seed), floats(type_, seed + 10)
    got = execute(f"{operation}.rn.{type_} %d, %a, %b;", a, b, out=a.dtype)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        wanted = exact(OPERATIONS[operation], (form.decode(x), form.decode(y)), signs(form, x, y))
        check(form, d, wanted, "rn", same_float, (x, y))


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_packed_halves_equal_two_scalar_operations(execute, floats, type_, operation):
    """PTX ISA §9.7.4 on .f16x2 and .bf16x2"""
    halves = [floats(type_, seed) for seed in range(6)]
    low, high = halves[:3], halves[3:]
    packed = [h.astype(np.uint32) << 16 | p for p, h in zip(low, high, strict=True)]
    third = ", %c" if operation == "fma" else ""
    count = 3 if third else 2
    got = execute(f"{operation}.rn.{type_}x2 %d, %a, %b{third};", *packed[:count], out=np.uint32)
    for number, part in enumerate((low, high)):
        alone = execute(f"{operation}.rn.{type_} %d, %a, %b{third};", *part[:count], out=np.uint16)
        assert (got >> 16 * number & 0xFFFF).tolist() == alone.tolist()


def test_packed_f32_pairs_equal_two_scalar_operations(execute, floats):
    """PTX ISA §9.7.3 on .f32x2"""
    parts = [floats("f32", seed) for seed in range(6)]
    low, high = parts[:3], parts[3:]
    packed = [h.astype(np.uint64) << 32 | p for p, h in zip(low, high, strict=True)]
    got = execute("fma.rn.f32x2 %d, %a, %b, %c;", *packed, out=np.uint64)
    for number, part in enumerate((low, high)):
        alone = execute("fma.rn.f32 %d, %a, %b, %c;", *part, out=np.uint32)
        assert (got >> 32 * number & 0xFFFFFFFF).tolist() == alone.tolist()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("seed", range(4))
def test_fma_rounds_the_exact_sum_once(execute, floats, formats, same_float, type_, mode, seed):
    """PTX ISA §9.7.3.6 fma"""
    form = formats[type_]
    a, b, c = (floats(type_, seed + 20 * k) for k in range(3))
    got = execute(f"fma.{mode}.{type_} %d, %a, %b, %c;", a, b, c, out=a.dtype)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        values = [form.decode(v) for v in (x, y, z)]
        if isinstance(values[2], float) and all(isinstance(v, Fraction) for v in values[:2]):
            wanted = values[2]
        else:
            wanted = exact(lambda p, q, r: p * q + r, values, signs(form, x, y, z))
        check(form, d, wanted, mode, same_float, values)


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("seed", range(3))
def test_half_fma_rounds_the_exact_sum_once(execute, floats, formats, same_float, type_, seed):
    """PTX ISA §9.7.4.4 fma"""
    form = formats[type_]
    a, b, c = (floats(type_, seed + 20 * k) for k in range(3))
    got = execute(f"fma.rn.{type_} %d, %a, %b, %c;", a, b, c, out=a.dtype)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        values = [form.decode(v) for v in (x, y, z)]
        wanted = exact(lambda p, q, r: p * q + r, values, signs(form, x, y, z))
        check(form, d, wanted, "rn", same_float, values)


def test_fma_of_f32_is_not_a_double_rounding(execute):
    """PTX ISA §9.7.3.6: 1 + 2^-24 + 2^-80 is just above a tie"""
    a = np.full(32, 1 + 2.0**-12, np.float32)
    b = np.full(32, 1 - 2.0**-12, np.float32)
    c = np.full(32, 2.0**-100, np.float32)
    got = execute("fma.rn.f32 %d, %a, %b, %c;", a, b, c, out=np.float32)
    assert got[0] == np.float32(1 - 2.0**-24)
    a[:], b[:], c[:] = 1 + 2.0**-23, 2.0**-1, 2.0**-80
    total = Fraction(float(a[0])) * Fraction(1, 2) + Fraction(2) ** -80
    got = execute("fma.rp.f32 %d, %a, %b, %c;", a, b, c, out=np.float32)
    assert Fraction(float(got[0])) > total > Fraction(float(np.nextafter(got[0], np.float32(0))))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_division_reciprocal_and_root_round_once(execute, floats, formats, same_float, type_, mode):
    """PTX ISA §9.7.3.8 div, §9.7.3.13 rcp, §9.7.3.15 sqrt"""
    form = formats[type_]
    a, b = floats(type_, 3), floats(type_, 4)
    quotient = execute(f"div.{mode}.{type_} %d, %a, %b;", a, b, out=a.dtype)
    reciprocal = execute(f"rcp.{mode}.{type_} %d, %a;", a, out=a.dtype)
    root = execute(f"sqrt.{mode}.{type_} %d, %a;", a, out=a.dtype)
    for x, y, d, e, r in zip(
        *(v.tolist() for v in (a, b, quotient, reciprocal, root)), strict=True
    ):
        p, q = form.decode(x), form.decode(y)
        wanted = exact(lambda m, n: m / n, (p, q), signs(form, x, y))
        check(form, d, wanted, mode, same_float, (p, q))
        check(form, e, exact(lambda m: 1 / m, (p,), signs(form, x)), mode, same_float, p)
        check_root(form, r, p, mode)


def check_root(form, got, value, mode):
    if isinstance(value, float) or value <= 0:
        if value == 0 or value == math.inf:
            assert form.decode(got) == value
        else:
            assert form.is_nan(got)
        return
    root = form.decode(got)
    below = form.decode(got - 1) if got else Fraction(0)
    above = form.decode(got + 1)
    if mode in ("rz", "rm"):
        assert root**2 <= value < above**2
    elif mode == "rp":
        assert below**2 < value <= root**2
    else:
        assert ((root + below) / 2) ** 2 <= value <= ((root + above) / 2) ** 2


@pytest.mark.parametrize(
    "text, function, low, high",
    [
        ("ex2.approx.ftz.f32", lambda x: 2.0**x, -20, 20),
        ("ex2.approx.f32", lambda x: 2.0**x, -20, 20),
        ("lg2.approx.f32", math.log2, 0.01, 1000),
        ("sin.approx.f32", math.sin, -3, 3),
        ("cos.approx.ftz.f32", math.cos, -3, 3),
        ("tanh.approx.f32", math.tanh, -4, 4),
        ("rcp.approx.ftz.f32", lambda x: 1 / x, 0.01, 100),
        ("rsqrt.approx.f32", lambda x: 1 / math.sqrt(x), 0.01, 100),
        ("sqrt.approx.f32", math.sqrt, 0.01, 100),
    ],
)
def test_approximations_are_within_two_units_in_the_last_place(execute, text, function, low, high):
    """PTX ISA §9.7.3.13–§9.7.3.22; the ISA allows a relative error of 2^-22 or more"""
    a = np.random.default_rng(0).uniform(low, high, 32).astype(np.float32)
    got = execute(f"{text} %d, %a;", a, out=np.float32)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        assert d == pytest.approx(function(x), rel=2.0**-23, abs=2.0**-24)


@pytest.mark.parametrize(
    "text, special, wanted",
    [
        ("ex2.approx.f32", [math.inf, -math.inf, 0.0], [math.inf, 0.0, 1.0]),
        ("lg2.approx.f32", [0.0, math.inf, 1.0], [-math.inf, math.inf, 0.0]),
        ("rcp.approx.f32", [math.inf, 0.0, -0.0], [0.0, math.inf, -math.inf]),
        ("rsqrt.approx.f32", [0.0, math.inf, 4.0], [math.inf, 0.0, 0.5]),
        ("tanh.approx.f32", [math.inf, -math.inf, 0.0], [1.0, -1.0, 0.0]),
    ],
)
def test_approximations_of_special_values(execute, text, special, wanted):
    """PTX ISA §9.7.3: the tables of special inputs"""
    a = np.resize(np.array(special, np.float32), 32)
    got = execute(f"{text} %d, %a;", a, out=np.float32)
    assert got[: len(wanted)].tolist() == wanted


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize(
    "name, function", [("ex2.approx", lambda x: 2.0**x), ("tanh.approx", math.tanh)]
)
def test_half_precision_approximations(execute, formats, type_, name, function):
    """PTX ISA §9.7.4.9 tanh, §9.7.4.10 ex2"""
    form = formats[type_]
    flush = ".ftz" if (type_, name) == ("bf16", "ex2.approx") else ""
    values = [form.encode(Fraction(float(x))) for x in np.random.default_rng(1).uniform(-3, 3, 32)]
    got = execute(f"{name}{flush}.{type_} %d, %a;", np.array(values, np.uint16), out=np.uint16)
    for x, d in zip(values, got.tolist(), strict=True):
        assert d == form.encode(Fraction(function(float(form.decode(x)))))


def test_coarse_f64_approximations_keep_the_high_word(execute):
    """PTX ISA §9.7.3.14 rcp.approx.ftz.f64, §9.7.3.17 rsqrt.approx.ftz.f64"""
    a = np.random.default_rng(2).uniform(0.1, 10, 32)
    for text, power in (("rcp", -1), ("rsqrt", -0.5)):
        got = execute(f"{text}.approx.ftz.f64 %d, %a;", a, out=np.float64)
        assert (got.view(np.uint64) & 0xFFFFFFFF == 0).all()
        np.testing.assert_allclose(got, a**power, rtol=2.0**-19)


def test_ftz_flushes_operands_and_results(execute):
    """PTX ISA §9.7.3: .ftz flushes subnormal f32 to zero of the same sign"""
    tiny = 2.0**-130
    a = np.resize(np.array([tiny, -tiny, 2.0**-126, 1.0], np.float32), 32)
    b = np.resize(np.array([1.0, 1.0, 0.5, tiny], np.float32), 32)
    plain = execute("mul.f32 %d, %a, %b;", a, b, out=np.float32)
    flushed = execute("mul.ftz.f32 %d, %a, %b;", a, b, out=np.float32)
    fused = execute("fma.rn.ftz.f32 %d, %a, %b, %b;", a, b, out=np.float32)
    assert plain[:4].tolist() == [tiny, -tiny, 2.0**-127, tiny]
    assert flushed[:4].view(np.uint32).tolist() == [0, 0x80000000, 0, 0]
    assert fused[:4].tolist() == [1.0, 1.0, 0.5, 0.0]


def test_sat_clamps_to_the_unit_interval(execute):
    """PTX ISA §9.7.3: .sat, NaN gives +0"""
    a = np.resize(np.array([-1.0, 0.25, 2.0, math.nan], np.float32), 32)
    got = execute("add.sat.f32 %d, %a, 0f00000000;", a, out=np.float32)
    assert got[:4].tolist() == [0.0, 0.25, 1.0, 0.0]
    got = execute("fma.rn.sat.f32 %d, %a, 0f3F800000, 0f3F000000;", a, out=np.float32)
    assert got[:4].tolist() == [0.0, 0.75, 1.0, 0.0]

"""Signs, NaN and order of floats: min, max, abs, neg, copysign, testp, relu, signs of zero."""

from __future__ import annotations

import numpy as np
import pytest


def minimum(form, x, y, sign, propagate):
    """The pattern of the smaller (sign 1) or larger (sign -1) value; None for NaN."""
    nan_x, nan_y = form.is_nan(x), form.is_nan(y)
    if (nan_x and nan_y) or (propagate and (nan_x or nan_y)):
        return None
    if nan_x or nan_y:
        return y if nan_x else x

    def key(pattern):
        value = form.decode(pattern)
        return sign * (value if value else 0), sign * (-1 if pattern & form.sign else 1)

    return min(x, y, key=key)


@pytest.mark.parametrize("name, sign", [("min", 1), ("max", -1)])
@pytest.mark.parametrize(
    ("type_", "nan"),
    [
        *((type_, "") for type_ in ("f16", "bf16", "f32", "f64")),
        *((type_, ".NaN") for type_ in ("f16", "bf16", "f32")),
    ],
)
def test_minimum_and_maximum_know_nan_and_signed_zero(
    execute, floats, formats, type_, name, sign, nan
):
    """PTX ISA §9.7.3.11 min, §9.7.3.12 max, §9.7.4.7, §9.7.4.8"""
    form = formats[type_]
    a, b = floats(type_, 5), floats(type_, 6)
    got = execute(f"{name}{nan}.{type_} %d, %a, %b;", a, b, out=a.dtype)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        wanted = minimum(form, x, y, sign, bool(nan))
        assert d == (form.sign - 1 if wanted is None else wanted), (hex(x), hex(y))


def test_xorsign_leaves_a_nan_without_a_sign(execute):
    """PTX ISA §9.7.3.11: the sign is set only where the result is no NaN"""
    nan, one = np.full(32, 0xFFC00001, np.uint32), np.full(32, 0x3F800000, np.uint32)
    got = execute("min.NaN.xorsign.abs.f32 %d, %a, %b;", nan, one, out=np.uint32)
    assert got[0] == 0x7FFFFFFF
    got = execute("min.xorsign.abs.f32 %d, %a, %b;", nan, one, out=np.uint32)
    assert got[0] == 0xBF800000


def test_xorsign_abs_and_three_operands(execute, floats, formats):
    """PTX ISA §9.7.3.11 min.xorsign.abs.f32 and the three-input form"""
    form = formats["f32"]
    a, b, c = (
        np.where(np.isnan(v.view(np.float32)), np.uint32(0x3F800000), v)
        for v in (floats("f32", k) for k in (7, 8, 9))
    )
    got = execute("min.xorsign.abs.f32 %d, %a, %b;", a, b, out=np.uint32)
    three = execute("max.f32 %d, %a, %b, %c;", a, b, c, out=np.uint32)
    for x, y, z, d, e in zip(*(v.tolist() for v in (a, b, c, got, three)), strict=True):
        smaller = min(x & 0x7FFFFFFF, y & 0x7FFFFFFF)
        assert d == smaller | (x ^ y) & 0x80000000
        assert e == minimum(form, minimum(form, x, y, -1, False), z, -1, False)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64", "f16x2", "bf16x2"])
def test_abs_and_neg_touch_only_sign_bits(execute, integers, type_):
    """PTX ISA §9.7.3.9 abs, §9.7.3.10 neg, §9.7.4.6, §9.7.4.5"""
    bits = 32 if type_.endswith("x2") else int(type_.lstrip("bf"))
    sign = 0x80008000 if type_.endswith("x2") else 1 << bits - 1
    a = integers(bits, 11)
    absolute = execute(f"abs.{type_} %d, %a;", a, out=a.dtype)
    negative = execute(f"neg.{type_} %d, %a;", a, out=a.dtype)
    assert absolute.tolist() == [x & ~sign for x in a.tolist()]
    assert negative.tolist() == [x ^ sign for x in a.tolist()]


def test_copysign_takes_the_sign_of_the_first_operand(execute, integers):
    """PTX ISA §9.7.3.2 copysign"""
    a, b = integers(32, 1), integers(32, 2)
    got = execute("copysign.f32 %d, %a, %b;", a, b, out=np.uint32)
    assert got.tolist() == [
        x & 0x80000000 | y & 0x7FFFFFFF for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    "name, test",
    [
        ("finite", lambda f, p: p & 0x7FFFFFFF < 0x7F800000),
        ("infinite", lambda f, p: p & 0x7FFFFFFF == 0x7F800000),
        ("number", lambda f, p: not f.is_nan(p)),
        ("notanumber", lambda f, p: f.is_nan(p)),
        ("normal", lambda f, p: 0x00800000 <= p & 0x7FFFFFFF < 0x7F800000 or p & 0x7FFFFFFF == 0),
        ("subnormal", lambda f, p: 0 < p & 0x7FFFFFFF < 0x00800000),
    ],
)
def test_classification(execute, floats, formats, name, test):
    """PTX ISA §9.7.3.1 testp"""
    a = floats("f32", 12)
    got = execute(f"testp.{name}.f32 %p, %a; selp.u32 %d, 1, 0, %p;", a, out=np.uint32)
    assert got.tolist() == [int(test(formats["f32"], x)) for x in a.tolist()]


@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize(
    "text, operands, negative",
    [
        ("add.rm", (1.0, -1.0), True),
        ("add.rm", (0.0, 0.0), False),
        ("add.rm", (-0.0, 0.0), True),
        ("add.rn", (1.0, -1.0), False),
        ("sub.rm", (-0.0, -0.0), True),
        ("sub.rm", (2.0, 2.0), True),
        ("sub.rp", (2.0, 2.0), False),
        ("mul.rm", (-0.0, -1.0), False),
        ("mul.rm", (2.0, 0.0), False),
        ("fma.rm", (2.0, -1.0, 2.0), True),
        ("fma.rm", (0.0, 3.0, 0.0), False),
        ("fma.rm", (0.0, -3.0, 0.0), True),
        ("fma.rz", (2.0, -1.0, 2.0), False),
    ],
)
def test_the_sign_of_an_exact_zero_follows_the_rounding_mode(
    execute, text, operands, type_, negative
):
    """IEEE 754 §6.3; the same was read from an H200"""
    dtype = np.float32 if type_ == "f32" else np.float64
    arrays = [np.full(32, value, dtype) for value in operands]
    names = ", ".join(f"%{name}" for name in "abc"[: len(arrays)])
    got = execute(f"{text}.{type_} %d, {names};", *arrays, out=dtype)
    assert (got == 0).all() and (np.signbit(got) == negative).all()


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_relu_turns_negative_zero_positive(execute, type_):
    """PTX ISA §9.7.4.4 fma.relu"""
    one, negative_zero = {"f16": (0x3C00, 0x8000), "bf16": (0x3F80, 0x8000)}[type_]
    a, b = np.full(32, negative_zero, np.uint16), np.full(32, one, np.uint16)
    assert not execute(f"fma.rn.relu.{type_} %d, %a, %b, %a;", a, b, out=np.uint16).any()

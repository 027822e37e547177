"""Integer arithmetic, one instruction a kernel (PTX ISA §9.7.1, §9.7.2)."""

from __future__ import annotations

import numpy as np
import pytest

SEEDS = range(3)


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def truncating(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


TWO_OPERANDS = {
    "9.7.1.1 add": ("add.{t} %d, %a, %b;", lambda a, b, bits: a + b),
    "9.7.1.2 sub": ("sub.{t} %d, %a, %b;", lambda a, b, bits: a - b),
    "9.7.1.3 mul.lo": ("mul.lo.{t} %d, %a, %b;", lambda a, b, bits: a * b),
    "9.7.1.3 mul.hi": ("mul.hi.{t} %d, %a, %b;", lambda a, b, bits: a * b >> bits),
    "9.7.1.12 min": ("min.{t} %d, %a, %b;", lambda a, b, bits: min(a, b)),
    "9.7.1.13 max": ("max.{t} %d, %a, %b;", lambda a, b, bits: max(a, b)),
    "9.7.1.4 mad.lo": ("mad.lo.{t} %d, %a, %b, %a;", lambda a, b, bits: a * b + a),
    "9.7.1.4 mad.hi": ("mad.hi.{t} %d, %a, %b, %b;", lambda a, b, bits: (a * b >> bits) + b),
    "9.7.1.7 sad": ("sad.{t} %d, %a, %b, %b;", lambda a, b, bits: abs(a - b) + b),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("rule", TWO_OPERANDS)
def test_integer_arithmetic_wraps_at_its_width(execute, integers, as_signed, rule, type_, seed):
    text, formula = TWO_OPERANDS[rule]
    bits = int(type_[1:])
    a, b = integers(bits, seed), integers(bits, seed + 100)
    got = execute(text.format(t=type_), a, b, out=a.dtype)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        if type_[0] == "s":
            x, y = as_signed(x, bits), as_signed(y, bits)
        assert d == formula(x, y, bits) & (1 << bits) - 1, (x, y)


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32"])
def test_wide_multiplication_keeps_every_bit(execute, integers, as_signed, type_):
    """PTX ISA §9.7.1.3 mul.wide, §9.7.1.4 mad.wide"""
    bits = int(type_[1:])
    wide = f"u{bits // 4}"
    a, b, c = integers(bits, 1), integers(bits, 2), integers(2 * bits, 3)
    product = execute(f"mul.wide.{type_} %d, %a, %b;", a, b, out=wide)
    total = execute(f"mad.wide.{type_} %d, %a, %b, %c;", a, b, c, out=wide)
    for x, y, z, d, e in zip(*(v.tolist() for v in (a, b, c, product, total)), strict=True):
        if type_[0] == "s":
            x, y = as_signed(x, bits), as_signed(y, bits)
        assert d == x * y & (1 << 2 * bits) - 1
        assert e == x * y + z & (1 << 2 * bits) - 1


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_division_and_remainder_truncate_toward_zero(execute, integers, as_signed, type_):
    """PTX ISA §9.7.1.8 div, §9.7.1.9 rem"""
    bits = int(type_[1:])
    a, b = integers(bits, 7), integers(bits, 8)
    b[b == 0] = 3
    quotient = execute(f"div.{type_} %d, %a, %b;", a, b, out=a.dtype)
    rest = execute(f"rem.{type_} %d, %a, %b;", a, b, out=a.dtype)
    for x, y, d, e in zip(*(v.tolist() for v in (a, b, quotient, rest)), strict=True):
        if type_[0] == "s":
            x, y = as_signed(x, bits), as_signed(y, bits)
        assert d == truncating(x, y) & (1 << bits) - 1, (x, y)
        assert e == x - y * truncating(x, y) & (1 << bits) - 1, (x, y)


def test_division_by_zero_does_not_stop_the_kernel(execute, integers):
    """PTX ISA §9.7.1.8: the value is unspecified"""
    a = integers(32, 1)
    got = execute("div.u32 %d, %a, 0;", a, out=np.uint32)
    assert len(got) == 32


@pytest.mark.parametrize("operation", ["add", "sub"])
def test_saturating_addition_clamps_to_the_signed_range(execute, integers, as_signed, operation):
    """PTX ISA §9.7.1.1 add.sat.s32, §9.7.1.2 sub.sat.s32"""
    a, b = integers(32, 3), integers(32, 4)
    got = execute(f"{operation}.sat.s32 %d, %a, %b;", a, b, out=np.uint32)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        x, y = as_signed(x, 32), as_signed(y, 32)
        exact = x + y if operation == "add" else x - y
        assert as_signed(d, 32) == clamp(exact, -(2**31), 2**31 - 1)


@pytest.mark.parametrize("type_", ["s16", "s32", "s64"])
def test_abs_and_neg_are_two_s_complement(execute, integers, as_signed, type_):
    """PTX ISA §9.7.1.10 abs, §9.7.1.11 neg"""
    bits = int(type_[1:])
    a = integers(bits, 5)
    absolute = execute(f"abs.{type_} %d, %a;", a, out=a.dtype)
    negative = execute(f"neg.{type_} %d, %a;", a, out=a.dtype)
    for x, d, e in zip(a.tolist(), absolute.tolist(), negative.tolist(), strict=True):
        assert d == abs(as_signed(x, bits)) & (1 << bits) - 1
        assert e == -x & (1 << bits) - 1


@pytest.mark.parametrize("type_", ["u32", "s32"])
def test_mul24_takes_the_48_bit_product_of_the_low_24_bits(execute, integers, as_signed, type_):
    """PTX ISA §9.7.1.5 mul24, §9.7.1.6 mad24"""
    a, b = integers(32, 8), integers(32, 9)
    low = execute(f"mul24.lo.{type_} %d, %a, %b;", a, b, out=np.uint32)
    high = execute(f"mad24.hi.{type_} %d, %a, %b, %b;", a, b, out=np.uint32)
    for x, y, d, e in zip(*(v.tolist() for v in (a, b, low, high)), strict=True):
        p, q = x & 0xFFFFFF, y & 0xFFFFFF
        if type_ == "s32":
            p, q = as_signed(p, 24), as_signed(q, 24)
        assert d == p * q & 0xFFFFFFFF
        assert e == (p * q >> 16) + y & 0xFFFFFFFF


@pytest.mark.parametrize("types", ["u32.u32", "u32.s32", "s32.u32", "s32.s32"])
def test_dp4a_adds_four_byte_products(execute, integers, as_signed, types):
    """PTX ISA §9.7.1.23 dp4a, §9.7.1.24 dp2a"""
    a, b, c = (integers(32, seed) for seed in (1, 2, 3))
    got = execute(f"dp4a.{types} %d, %a, %b, %c;", a, b, c, out=np.uint32)
    halves = execute(f"dp2a.hi.{types} %d, %a, %b, %c;", a, b, c, out=np.uint32)
    a_signed, b_signed = (name == "s32" for name in types.split("."))

    def parts(value: int, width: int, is_signed: bool) -> list[int]:
        found = [value >> shift & (1 << width) - 1 for shift in range(0, 32, width)]
        return [as_signed(part, width) if is_signed else part for part in found]

    for x, y, z, d, e in zip(*(v.tolist() for v in (a, b, c, got, halves)), strict=True):
        products = zip(parts(x, 8, a_signed), parts(y, 8, b_signed), strict=True)
        assert d == z + sum(p * q for p, q in products) & 0xFFFFFFFF
        upper = zip(parts(x, 16, a_signed), parts(y, 8, b_signed)[2:], strict=True)
        assert e == z + sum(p * q for p, q in upper) & 0xFFFFFFFF


def test_carries_chain_through_extended_addition_and_subtraction(execute, integers):
    """PTX ISA §9.7.2.1 add.cc, §9.7.2.2 addc, §9.7.2.3 sub.cc, §9.7.2.4 subc"""
    a, b = integers(64, 1), integers(64, 2)
    body = """mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b;
              add.cc.u32 %t4, %t0, %t2; addc.u32 %t5, %t1, %t3; mov.b64 %d, {%t4, %t5};"""
    total = execute(body, a, b, out=np.uint64)
    difference = execute(
        body.replace("addc", "subc").replace("add.cc", "sub.cc"), a, b, out=np.uint64
    )
    for x, y, d, e in zip(*(v.tolist() for v in (a, b, total, difference)), strict=True):
        assert d == x + y & (1 << 64) - 1
        assert e == x - y & (1 << 64) - 1


def test_extended_multiplication_builds_a_128_bit_product(execute, integers):
    """PTX ISA §9.7.2.5 mad.cc, §9.7.2.6 madc"""
    a, b = integers(64, 3), integers(64, 4)
    body = """mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b;
      mul.lo.u32 %t4, %t0, %t2; mul.hi.u32 %t5, %t0, %t2;
      mad.lo.cc.u32 %t5, %t0, %t3, %t5; madc.hi.u32 %t6, %t0, %t3, 0;
      mad.lo.cc.u32 %t5, %t1, %t2, %t5; madc.hi.cc.u32 %t6, %t1, %t2, %t6; addc.u32 %t7, 0, 0;
      mad.lo.cc.u32 %t6, %t1, %t3, %t6; madc.hi.u32 %t7, %t1, %t3, %t7;
      mov.b64 %d, {%t6, %t7};"""
    got = execute(body, a, b, out=np.uint64)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert d == x * y >> 64


@pytest.mark.parametrize("operation", ["add", "min", "max"])
@pytest.mark.parametrize("type_", ["u16x2", "s16x2"])
def test_packed_integers_work_on_each_half(execute, integers, as_signed, operation, type_):
    """PTX ISA §9.7.1.1 add, §9.7.1.12 min, §9.7.1.13 max on .u16x2 and .s16x2"""
    a, b = integers(32, 5), integers(32, 6)
    got = execute(f"{operation}.{type_} %d, %a, %b;", a, b, out=np.uint32)
    function = {"add": lambda x, y: x + y, "min": min, "max": max}[operation]
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        for shift in (0, 16):
            p, q = x >> shift & 0xFFFF, y >> shift & 0xFFFF
            if type_ == "s16x2":
                p, q = as_signed(p, 16), as_signed(q, 16)
            assert d >> shift & 0xFFFF == function(p, q) & 0xFFFF


def test_relu_clamps_a_signed_minimum_at_zero(execute, integers, as_signed):
    """PTX ISA §9.7.1.12 min.relu.s32"""
    a, b = integers(32, 1), integers(32, 2)
    got = execute("min.relu.s32 %d, %a, %b;", a, b, out=np.uint32)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert d == max(0, min(as_signed(x, 32), as_signed(y, 32)))

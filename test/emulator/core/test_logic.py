"""Logic, shifts and bit fields, one instruction a kernel (PTX ISA §9.7.8, §9.7.1.14–§9.7.1.22)."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize(
    "rule, formula",
    [
        ("9.7.8.1 and", lambda a, b: a & b),
        ("9.7.8.2 or", lambda a, b: a | b),
        ("9.7.8.3 xor", lambda a, b: a ^ b),
    ],
)
def test_bitwise_operations(execute, integers, bits, rule, formula):
    a, b = integers(bits, 1), integers(bits, 2)
    got = execute(f"{rule.split()[1]}.b{bits} %d, %a, %b;", a, b, out=a.dtype)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert d == formula(x, y)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_not_and_cnot(execute, integers, bits):
    """PTX ISA §9.7.8.4 not, §9.7.8.5 cnot"""
    a = integers(bits, 3)
    inverted = execute(f"not.b{bits} %d, %a;", a, out=a.dtype)
    logical = execute(f"cnot.b{bits} %d, %a;", a, out=a.dtype)
    for x, d, e in zip(a.tolist(), inverted.tolist(), logical.tolist(), strict=True):
        assert d == ~x & (1 << bits) - 1
        assert e == (x == 0)


def test_predicates_take_part_in_logic(execute, integers):
    """PTX ISA §9.7.8.1–§9.7.8.4 on .pred"""
    a, b = integers(32, 1), integers(32, 2)
    got = execute(
        """setp.lt.u32 %p, %a, 100; setp.gt.u32 %q, %b, 50; xor.pred %p, %p, %q;
                     not.pred %p, %p; selp.u32 %d, 1, 0, %p;""",
        a,
        b,
        out=np.uint32,
    )
    assert got.tolist() == [
        int((x < 100) == (y > 50)) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shift_amounts_at_and_above_the_width_are_clamped(execute, integers, as_signed, bits):
    """PTX ISA §9.7.8.8 shl, §9.7.8.9 shr"""
    a = integers(bits, 4)
    n = np.array([0, 1, bits - 1, bits, bits + 1, 255, 256, 0xFFFFFFFF] * 4, np.uint32)
    left = execute(f"shl.b{bits} %d, %a, %b;", a, n, out=a.dtype)
    logical = execute(f"shr.u{bits} %d, %a, %b;", a, n, out=a.dtype)
    arithmetic = execute(f"shr.s{bits} %d, %a, %b;", a, n, out=a.dtype)
    full = (1 << bits) - 1
    for x, k, d, e, f in zip(*(v.tolist() for v in (a, n, left, logical, arithmetic)), strict=True):
        k = min(k, bits)
        assert d == x << k & full
        assert e == x >> k
        assert f == as_signed(x, bits) >> k & full


@pytest.mark.parametrize("amount", [0, 5, 31, 32, 40])
def test_shifts_by_a_constant(execute, integers, as_signed, amount):
    """PTX ISA §9.7.8.8 shl, §9.7.8.9 shr"""
    a = integers(32, 5)
    left = execute(f"shl.b32 %d, %a, {amount};", a, out=np.uint32)
    right = execute(f"shr.s32 %d, %a, {amount};", a, out=np.uint32)
    for x, d, e in zip(a.tolist(), left.tolist(), right.tolist(), strict=True):
        assert d == x << amount & 0xFFFFFFFF
        assert e == as_signed(x, 32) >> amount & 0xFFFFFFFF


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
@pytest.mark.parametrize("direction", ["l", "r"])
def test_funnel_shift(execute, integers, direction, mode):
    """PTX ISA §9.7.8.7 shf"""
    a, b = integers(32, 6), integers(32, 7)
    c = np.array([0, 1, 31, 32, 33, 63, 64, 0xFFFFFFFF] * 4, np.uint32)
    got = execute(f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;", a, b, c, out=np.uint32)
    for low, high, k, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        k = k & 31 if mode == "wrap" else min(k, 32)
        both = high << 32 | low
        assert d == ((both << k >> 32) if direction == "l" else both >> k) & 0xFFFFFFFF


@pytest.mark.parametrize("lut", [0x00, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0xFF, 0x3C])
def test_lop3_looks_every_bit_up(execute, integers, lut):
    """PTX ISA §9.7.8.6 lop3"""
    a, b, c = (integers(32, seed) for seed in (1, 2, 3))
    got = execute(f"lop3.b32 %d, %a, %b, %c, {lut};", a, b, c, out=np.uint32)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        for bit in range(32):
            index = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | z >> bit & 1
            assert d >> bit & 1 == lut >> index & 1


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_counts(execute, integers, as_signed, bits):
    """PTX ISA §9.7.1.14 popc, §9.7.1.15 clz, §9.7.1.16 bfind, §9.7.1.18 brev"""
    a = integers(bits, 8)
    popc = execute(f"popc.b{bits} %d, %a;", a, out=np.uint32)
    clz = execute(f"clz.b{bits} %d, %a;", a, out=np.uint32)
    find = execute(f"bfind.u{bits} %d, %a;", a, out=np.uint32)
    signed_find = execute(f"bfind.s{bits} %d, %a;", a, out=np.uint32)
    amount = execute(f"bfind.shiftamt.u{bits} %d, %a;", a, out=np.uint32)
    reverse = execute(f"brev.b{bits} %d, %a;", a, out=a.dtype)
    for lane, x in enumerate(a.tolist()):
        assert popc[lane] == bin(x).count("1")
        assert clz[lane] == bits - x.bit_length()
        assert find[lane] == (x.bit_length() - 1) & 0xFFFFFFFF
        value = as_signed(x, bits)
        assert (
            signed_find[lane] == ((value if value >= 0 else ~value).bit_length() - 1) & 0xFFFFFFFF
        )
        assert amount[lane] == (bits - x.bit_length() if x else 0xFFFFFFFF)
        assert reverse[lane] == int(f"{x:0{bits}b}"[::-1], 2)


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_bit_field_extract(execute, integers, type_):
    """PTX ISA §9.7.1.19 bfe, by the pseudo-code of the section"""
    bits = int(type_[1:])
    a = integers(bits, 9)
    rng = np.random.default_rng(0)
    start = rng.choice(np.array([0, 1, 5, 31, 32, 63, 64, 255, 256, 300], np.uint32), 32)
    length = rng.choice(np.array([0, 1, 8, 31, 32, 33, 64, 255, 257], np.uint32), 32)
    got = execute(f"bfe.{type_} %d, %a, %b, %c;", a, start, length, out=a.dtype)
    for x, pos, size, d in zip(*(v.tolist() for v in (a, start, length, got)), strict=True):
        pos, size = pos & 0xFF, size & 0xFF
        sign = 0
        if type_[0] == "s" and size:
            sign = x >> min(pos + size - 1, bits - 1) & 1
        wanted = 0
        for i in range(bits):
            bit = x >> pos + i & 1 if i < size and pos + i < bits else sign
            wanted |= bit << i
        assert d == wanted, (hex(x), pos, size)


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_field_insert(execute, integers, bits):
    """PTX ISA §9.7.1.20 bfi, by the pseudo-code of the section"""
    a, b = integers(bits, 1), integers(bits, 2)
    rng = np.random.default_rng(1)
    start = rng.choice(np.array([0, 1, 5, 31, 63, 64, 255, 256], np.uint32), 32)
    length = rng.choice(np.array([0, 1, 8, 31, 32, 64, 255, 257], np.uint32), 32)
    got = execute(f"bfi.b{bits} %d, %a, %b, %c, %e;", a, b, start, length, out=a.dtype)
    for x, y, pos, size, d in zip(*(v.tolist() for v in (a, b, start, length, got)), strict=True):
        pos, size = pos & 0xFF, size & 0xFF
        wanted = y
        for i in range(size):
            if pos + i < bits:
                wanted = (
                    wanted & ~(1 << pos + i) | (x >> i & 1) << pos + i
                    if i < bits
                    else wanted & ~(1 << pos + i)
                )
        assert d == wanted, (hex(x), hex(y), pos, size)


def test_masks_and_extensions(execute, integers, as_signed):
    """PTX ISA §9.7.1.21 szext, §9.7.1.22 bmsk, §9.7.1.17 fns"""
    a = integers(32, 3)
    n = np.array([0, 1, 8, 31, 32, 33, 64, 200] * 4, np.uint32)
    extended = execute("szext.clamp.s32 %d, %a, %b;", a, n, out=np.uint32)
    mask = execute("bmsk.clamp.b32 %d, %b, 7;", a, n, out=np.uint32)
    wrapped = execute("bmsk.wrap.b32 %d, %b, 7;", a, n, out=np.uint32)
    nth = execute("fns.b32 %d, %a, 3, 2;", a, out=np.uint32)
    for x, k, d, e, f, g in zip(
        *(v.tolist() for v in (a, n, extended, mask, wrapped, nth)), strict=True
    ):
        count = min(k, 32)
        assert d == (as_signed(x & (1 << count) - 1, count) & 0xFFFFFFFF if count else 0)
        assert e == (0x7F << k & 0xFFFFFFFF if k < 32 else 0)
        assert f == 0x7F << (k & 31) & 0xFFFFFFFF
        above = [i for i in range(3, 32) if x >> i & 1]
        assert g == (above[1] if len(above) > 1 else 0xFFFFFFFF)

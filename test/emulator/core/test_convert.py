"""cvt between every pair of types, against exact values (PTX ISA §9.7.9.21, §9.7.9.22)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
REGISTERS = {8: np.uint16, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def bits_of(type_: str) -> int:
    return int(type_.lstrip("usbf"))


def limits(type_: str) -> tuple[int, int]:
    bits = bits_of(type_)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)


def source_register(integers, bits: int, seed: int) -> np.ndarray:
    """Values for a source type, in a register of at least 16 bits with garbage above 8 bits."""
    values = integers(bits, seed)
    if bits > 8:
        return values
    return values.astype(np.uint16) | integers(16, seed + 1) & np.uint16(0xFF00)


def saturates(target: str, source: str) -> bool:
    """Whether some integer of the source is none of the target; else there is no .sat."""
    (low, high), (least, most) = limits(target), limits(source)
    return least < low or high < most


@pytest.mark.parametrize(
    ("target", "source", "sat"),
    [
        (target, source, sat)
        for target, source in itertools.product(INTEGERS, INTEGERS)
        for sat in (["", ".sat"] if saturates(target, source) else [""])
    ],
)
def test_integer_conversions_extend_truncate_or_saturate(
    execute, integers, as_signed, target, source, sat
):
    a = source_register(integers, bits_of(source), 1)
    out = REGISTERS[bits_of(target)]
    got = execute(f"cvt{sat}.{target}.{source} %d, %a;", a, out=out)
    low, high = limits(target)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        value = x & (1 << bits_of(source)) - 1
        value = as_signed(value, bits_of(source)) if source[0] == "s" else value
        if sat:
            value = max(low, min(high, value))
        wanted = value & (1 << bits_of(target)) - 1
        if target[0] == "s":
            wanted = as_signed(wanted, bits_of(target))
        assert d == wanted & (1 << np.dtype(out).itemsize * 8) - 1, value


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", FLOATS)
def test_integers_become_floats_with_one_rounding(
    execute, integers, as_signed, formats, target, source, mode
):
    a = source_register(integers, bits_of(source), 2)
    form = formats[target]
    got = execute(f"cvt.{mode}.{target}.{source} %d, %a;", a, out=f"u{form.bits // 8}")
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        value = x & (1 << bits_of(source)) - 1
        value = as_signed(value, bits_of(source)) if source[0] == "s" else value
        assert d == form.encode(Fraction(value), mode), (value, hex(d))


ROUNDERS = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def nan_integer(source: str, target: str) -> int:
    return 1 << bits_of(target) - 1 if source == "f64" or bits_of(target) == 64 else 0


@pytest.mark.parametrize("mode", ROUNDERS)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_become_integers_clamped_to_the_range(
    execute, floats, formats, as_signed, target, source, mode
):
    form = formats[source]
    a = floats(source, 3)
    a[::4] = [form.encode(Fraction(2 * k + 1, 2) * (-1) ** k) for k in range(8)]
    a[1::8] = [form.encode(Fraction(s * 2**k)) for s, k in ((1, 31), (-1, 31), (1, 7), (-1, 15))]
    out = REGISTERS[bits_of(target)]
    got = execute(f"cvt.{mode}.{target}.{source} %d, %a;", a, out=out)
    low, high = limits(target)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        value = form.decode(x)
        if isinstance(value, Fraction):
            wanted = max(low, min(high, ROUNDERS[mode](value)))
        elif math.isnan(value):
            wanted = (
                as_signed(nan_integer(source, target), bits_of(target))
                if target[0] == "s"
                else nan_integer(source, target)
            )
        else:
            wanted = high if value > 0 else low
        assert d == wanted & (1 << np.dtype(out).itemsize * 8) - 1, (value, hex(d))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "target, source",
    [
        ("f16", "f32"),
        ("bf16", "f32"),
        ("f16", "f64"),
        ("bf16", "f64"),
        ("f32", "f64"),
        ("f16", "bf16"),
        ("bf16", "f16"),
    ],
)
def test_narrowing_rounds_once_in_every_mode(
    execute, floats, formats, same_float, target, source, mode, seed
):
    wide, narrow = formats[source], formats[target]
    a = floats(source, seed)
    got = execute(f"cvt.{mode}.{target}.{source} %d, %a;", a, out=f"u{narrow.bits // 8}")
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        wanted = narrow.encode(wide.decode(x), mode, bool(x & wide.sign))
        assert same_float(narrow, d, wanted), (hex(x), hex(d), hex(wanted))


@pytest.mark.parametrize(
    "target, source",
    [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16"), ("f64", "f32")],
)
def test_widening_is_exact(execute, floats, formats, same_float, target, source):
    narrow, wide = formats[source], formats[target]
    a = floats(source, 4)
    got = execute(f"cvt.{target}.{source} %d, %a;", a, out=f"u{wide.bits // 8}")
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        wanted = wide.encode(narrow.decode(x), "rn", bool(x & narrow.sign))
        assert same_float(wide, d, wanted)


def test_every_bf16_halfway_case_rounds_to_even(execute):
    upper = np.arange(32, dtype=np.uint32) * 0x0123 + 0x3F00
    for low, step in ((0x8000, None), (0x8001, 1), (0x7FFF, 0)):
        a = upper << 16 | np.uint32(low)
        got = execute("cvt.rn.bf16.f32 %d, %a;", a, out=np.uint16)
        wanted = upper + (upper & 1 if step is None else step)
        assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize("mode", ROUNDERS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_float_to_whole_float(execute, floats, formats, type_, mode):
    form = formats[type_]
    a = floats(type_, 5)
    got = execute(f"cvt.{mode}.{type_}.{type_} %d, %a;", a, out=a.dtype)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        value = form.decode(x)
        if isinstance(value, Fraction):
            assert d & ~form.sign == form.encode(Fraction(abs(ROUNDERS[mode](value))))
            assert d & form.sign == x & form.sign
        else:
            assert form.decode(d) == value or (form.is_nan(d) and form.is_nan(x))


def test_sat_and_ftz_on_float_conversions(execute):
    a = np.resize(np.array([-0.5, 0.25, 3.0, math.nan, 2.0**-130], np.float32), 32)
    got = execute("cvt.sat.f32.f32 %d, %a;", a, out=np.float32)
    assert got[:4].tolist() == [0.0, 0.25, 1.0, 0.0]
    got = execute("cvt.ftz.f64.f32 %d, %a;", a, out=np.float64)
    assert got[4] == 0.0
    got = execute("cvt.rn.sat.f16.f32 %d, %a;", a, out=np.float16)
    assert got[:4].tolist() == [0.0, 0.25, 1.0, 0.0]


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_packing_two_f32_puts_the_first_operand_in_the_upper_half(
    execute, floats, formats, same_float, type_, relu, mode
):
    wide, narrow = formats["f32"], formats[type_]
    a, b = floats("f32", 6), floats("f32", 7)
    got = execute(f"cvt.{mode}{relu}.{type_}x2.f32 %d, %a, %b;", a, b, out=np.uint32)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        for pattern, half in ((x, d >> 16), (y, d & 0xFFFF)):
            wanted = narrow.encode(wide.decode(pattern), mode, bool(pattern & wide.sign))
            if relu and wanted & narrow.sign and not narrow.is_nan(wanted):
                assert half == 0
            else:
                assert same_float(narrow, half, wanted)


def test_the_worked_bf16x2_example(execute):
    a, b = np.full(32, 1.0, np.float32), np.full(32, 2.0, np.float32)
    assert execute("cvt.rn.bf16x2.f32 %d, %a, %b;", a, b, out=np.uint32)[0] == 0x3F804000


@pytest.mark.parametrize("mode", ["rna", "rn", "rz"])
def test_tf32_keeps_ten_mantissa_bits(execute, floats, formats, mode):
    wide, narrow = formats["f32"], formats["tf32"]
    a = floats("f32", 8)
    a[:4] = [0x3F801000, 0x3F803000, 0x3F801001, 0xBF801000]
    got = execute(f"cvt.{mode}.tf32.f32 %d, %a;", a, out=np.uint32)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        if wide.is_nan(x):
            assert wide.is_nan(d)
            continue
        assert d == narrow.encode(wide.decode(x), mode, bool(x & wide.sign)) << 13


def test_satfinite_replaces_infinity_by_the_largest_value(execute):
    a = np.resize(np.array([np.inf, -np.inf, 1e38, 1.5], np.float32), 32)
    got = execute("cvt.rn.satfinite.f16x2.f32 %d, %a, %a;", a, out=np.uint32)
    assert (got[:4] & 0xFFFF).tolist() == [0x7BFF, 0xFBFF, 0x7BFF, 0x3E00]


@pytest.mark.parametrize(
    "type_, exponent_bits, bias, largest", [("e4m3", 4, 7, 448.0), ("e5m2", 5, 15, 57344.0)]
)
def test_8_bit_floats_round_to_the_nearest_and_saturate(
    execute, type_, exponent_bits, bias, largest
):
    mantissa_bits = 7 - exponent_bits

    def value(pattern: int) -> float:
        exponent, fraction = pattern >> mantissa_bits, pattern & (1 << mantissa_bits) - 1
        if exponent == 0:
            return fraction * 2.0 ** (1 - bias - mantissa_bits)
        return (1 + fraction / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)

    table = [(value(p), p) for p in range(128) if value(p) <= largest]
    a = np.random.default_rng(3).normal(size=32).astype(np.float32) * 100
    a[:3] = [np.inf, -1e9, 0.0]
    b = np.random.default_rng(4).normal(size=32).astype(np.float32)
    got = execute(f"cvt.rn.satfinite.{type_}x2.f32 %d, %a, %b;", a, b, out=np.uint16)
    back = execute(f"cvt.rn.f16x2.{type_}x2 %d, %a;", got, out=np.uint32)
    for x, y, d, e in zip(a.tolist(), b.tolist(), got.tolist(), back.tolist(), strict=True):
        for number, byte, half in ((x, d >> 8, e >> 16), (y, d & 0xFF, e & 0xFFFF)):
            clamped = min(abs(number), largest)
            wanted = min(table, key=lambda row: (abs(row[0] - clamped), row[1] & 1))[1]
            assert byte & 0x7F == wanted, number
            assert np.array([half], np.uint16).view(np.float16)[0] == math.copysign(
                value(wanted), number
            )


def test_packing_clamped_integers(execute, integers, as_signed):
    """PTX ISA §9.7.9.22 cvt.pack"""
    a, b, c = (integers(32, seed) for seed in (1, 2, 3))
    got = execute("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", a, b, c, out=np.uint32)
    pair = execute("cvt.pack.sat.s16.s32 %d, %a, %b;", a, b, out=np.uint32)
    for x, y, z, d, e in zip(*(v.tolist() for v in (a, b, c, got, pair)), strict=True):
        x, y = as_signed(x, 32), as_signed(y, 32)
        assert d == z << 16 & 0xFFFF0000 | max(0, min(255, x)) << 8 | max(0, min(255, y))
        clamp = [max(-32768, min(32767, v)) & 0xFFFF for v in (x, y)]
        assert e == clamp[0] << 16 | clamp[1]


def test_a_narrow_result_is_extended_into_a_wide_register(execute):
    """PTX ISA §9.4.1: cvt may write a register wider than its type"""
    a = np.arange(32, dtype=np.uint32) + 120
    got = execute("cvt.s8.u32 %d, %a;", a, out=np.uint32)
    assert got.tolist() == [(x if x < 128 else x - 256) & 0xFFFFFFFF for x in a.tolist()]
    got = execute("cvt.u8.u32 %d, %a;", a, out=np.uint32)
    assert got.tolist() == [x & 0xFF for x in a.tolist()]

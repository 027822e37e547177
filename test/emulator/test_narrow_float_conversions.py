"""cvt to and from fp8, fp6, fp4 and ue8m0 against tables of their values (PTX ISA §9.7.9.21)."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

FORMATS = {"e4m3": (4, 3, 448.0), "e5m2": (5, 2, 57344.0), "e2m3": (2, 3, 7.5),
           "e3m2": (3, 2, 28.0), "e2m1": (2, 1, 6.0)}  # fmt: skip
"""Exponent bits, mantissa bits, largest number."""
SMALLER = ("e2m3", "e3m2", "e2m1")


def table(name: str) -> list[float]:
    """The numbers of the codes with sign 0, in order."""
    exponent_bits, mantissa_bits, largest = FORMATS[name]
    bias, one = (1 << exponent_bits - 1) - 1, 1 << mantissa_bits
    values = []
    for code in range(1 << exponent_bits + mantissa_bits):
        exponent, fraction = divmod(code, one)
        scale = 2.0 ** (max(exponent, 1) - bias)
        values.append(scale * (fraction / one + (exponent > 0)))
    return [value for value in values if value <= largest]


def nearest(name: str, value: float) -> int:
    """The code of a number, ties to the even code, beyond the largest to the largest."""
    numbers = table(name)
    sign = 1 << FORMATS[name][0] + FORMATS[name][1] if math.copysign(1, value) < 0 else 0
    clamped = min(abs(value), numbers[-1])
    return sign | min(range(len(numbers)), key=lambda c: (abs(numbers[c] - clamped), c & 1))


def numbers_for(name: str, seed: int) -> np.ndarray:
    """float32[32]: random, exact ties, zeros of both signs, overflow, infinity."""
    rng, values = np.random.default_rng(seed), table(name)
    found = (rng.normal(size=32) * values[-1] / 2).astype(np.float32)
    at = rng.integers(0, len(values) - 1, 12)
    found[:12] = [(values[i] + values[i + 1]) / 2 * (-1) ** i for i in at]
    found[12:18] = [0.0, -0.0, np.inf, -np.inf, -2 * values[-1], values[1] / 2]
    return found


def register(name: str) -> type:
    return np.uint8 if name == "e2m1" else np.uint16


def store_byte(opcode: str, operands: str) -> str:
    """The result of an fp4 conversion is a .b8 register; tests read 16 bits."""
    return f".reg .b8 %x; {opcode} %x, {operands}; mov.b16 %d, {{%x, 0}};"


def narrow(execute, name: str, source: str, operands: str, *values, relu: str = "") -> np.ndarray:
    opcode = f"cvt.rn.satfinite{relu}.{name}x2.{source}"
    text = f"{opcode} %d, {operands};" if name != "e2m1" else store_byte(opcode, operands)
    return execute(text, *values, out=np.uint16)


@pytest.mark.parametrize("name", SMALLER)
def test_two_f32_become_codes_below_8_bits(execute, name):
    a, b = numbers_for(name, 1), numbers_for(name, 2)
    got = narrow(execute, name, "f32", "%a, %b", a, b)
    pitch = 4 if name == "e2m1" else 8
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert d == nearest(name, x) << pitch | nearest(name, y), (x, y)


@pytest.mark.parametrize("name", SMALLER)
def test_nan_becomes_the_largest_number_where_there_is_no_nan(execute, name):
    a, b = np.full(32, np.nan, np.float32), np.full(32, -1.0, np.float32)
    got = narrow(execute, name, "f32", "%a, %b", a, b, relu=".relu")
    pitch = 4 if name == "e2m1" else 8
    assert got[0] == len(table(name)) - 1 << pitch


@pytest.mark.parametrize("source", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("name", FORMATS)
def test_packed_halves_become_codes(execute, name, source):
    a, b = numbers_for(name, 3), numbers_for(name, 4)
    kind, shift = (np.float16, 0) if source == "f16x2" else (np.float32, 16)
    a, b = (np.clip(x, -6e4, 6e4).astype(kind) for x in (a, b))
    upper, lower = (x.view(f"u{x.itemsize}").astype(np.uint32) >> shift for x in (a, b))
    got = narrow(execute, name, source, "%a", upper << 16 | lower)
    pitch = 4 if name == "e2m1" else 8
    for x, y, d in zip(upper.tolist(), lower.tolist(), got.tolist(), strict=True):
        halves = [np.array([bits << shift], f"u{shift // 8 + 2}").view(kind)[0] for bits in (x, y)]
        wanted = [nearest(name, float(half)) for half in halves]
        assert d == wanted[0] << pitch | wanted[1], halves


@pytest.mark.parametrize("wide", ["f16", "bf16"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", SMALLER)
def test_every_code_below_8_bits_becomes_its_half(execute, name, relu, wide):
    pitch = 4 if name == "e2m1" else 8
    count = 2 * len(table(name))
    codes = np.arange(32, dtype=np.uint16) * 5 % count
    packed = (codes << pitch | (codes + 3) % count).astype(np.uint16)
    kind = np.float16 if wide == "f16" else ml_dtypes.bfloat16
    body = f"cvt.rn{relu}.{wide}x2.{name}x2 %d, %a;"
    if pitch == 4:
        body = f".reg .b8 %x, %y; mov.b16 {{%x, %y}}, %a; {body.replace('%a', '%x')}"
    got = execute(body, packed, out=np.uint32)
    for code, word in zip(codes.tolist(), got.tolist(), strict=True):
        for each, half in ((code, word >> 16), ((code + 3) % count, word & 0xFFFF)):
            value = table(name)[each % (count // 2)] * (-1 if each >= count // 2 else 1)
            wanted = max(value, 0.0) if relu else value
            assert np.array([half], np.uint16).view(kind)[0] == wanted


def test_a_conversion_newer_than_the_module_says_which_version_it_needs():
    text = """
        .version 8.8
        .target sm_100a
        .address_size 64
        .visible .entry k() {
        .reg .b16 %d; .reg .b32 %a;
        cvt.rn.satfinite.e4m3x2.bf16x2 %d, %a;
        ret; }
    """
    with pytest.raises(Trap, match=r"needs \.version 9\.1, got sm_100a and 8\.8"):
        launch(text, "k", grid=1, block=1, params=[])


E8M0 = [
    ("rz", 1.5, 127), ("rp", 1.5, 128), ("rz", 1.0, 127), ("rp", 1.0, 127), ("rz", -6.0, 129),
    ("rp", -6.0, 130), ("rz", 0.0, 0), ("rp", 2.0**-127, 0), ("rp", 1.25 * 2.0**-127, 1),
    ("rz", 1.75 * 2.0**-126, 1), ("rp", 3e38, 255), ("rz", 3e38, 254), ("rz", math.inf, 255),
    ("rp", math.nan, 255),
]  # fmt: skip


@pytest.mark.parametrize("mode, value, wanted", E8M0)
def test_ue8m0_takes_the_exponent_of_the_magnitude(execute, mode, value, wanted):
    a, b = np.full(32, value, np.float32), np.full(32, 4.0, np.float32)
    got = execute(f"cvt.{mode}.ue8m0x2.f32 %d, %a, %b;", a, b, out=np.uint16)
    assert got[0] == wanted << 8 | 129
    finite = execute(f"cvt.{mode}.satfinite.ue8m0x2.f32 %d, %a, %b;", a, b, out=np.uint16)
    assert finite[0] >> 8 == (wanted if math.isnan(value) else min(wanted, 254))


def test_ue8m0_of_two_bf16_and_back(execute):
    a = np.resize(np.array([0x40C03F80, 0x0040FF80, 0x7FFF3F81], np.uint32), 32)
    codes = execute("cvt.rp.satfinite.ue8m0x2.bf16x2 %d, %a;", a, out=np.uint16)
    assert codes[:3].tolist() == [130 << 8 | 127, 254, 255 << 8 | 128]
    back = execute("cvt.rn.bf16x2.ue8m0x2 %d, %a;", codes, out=np.uint32)
    assert back[:3].tolist() == [0x4100_3F80, 0x0040_7F00, 0x7FFF_4000]


@pytest.mark.parametrize("name", FORMATS)
def test_stochastic_rounding_of_four_is_to_a_neighbour_and_exact_numbers_stay(execute, name):
    rng, numbers = np.random.default_rng(5), np.array(table(name))
    floats = rng.uniform(-numbers[-1], numbers[-1], (4, 32)).astype(np.float32)
    floats[0, :8] = numbers[rng.integers(0, len(numbers), 8)]
    random = rng.integers(0, 1 << 32, 32, np.uint32)
    pitch, out = (4, np.uint16) if name == "e2m1" else (8, np.uint32)
    opcode = f"cvt.rs.satfinite.{name}x4.f32"
    got = execute(f"{opcode} %d, {{%a, %b, %c, %e}}, %f;", *floats, random, out=out)
    sign = 1 << FORMATS[name][0] + FORMATS[name][1]
    for lane in range(32):
        for place in range(4):
            code = int(got[lane]) >> pitch * (3 - place) & (2 * sign - 1)
            value, rounded = float(floats[place, lane]), numbers[code & sign - 1]
            below, above = numbers[numbers <= abs(value)][-1], numbers[numbers >= abs(value)][0]
            assert rounded in (below, above)
            assert value == 0 or (code & sign != 0) == (value < 0) or rounded == 0


@pytest.mark.parametrize("type_, bits, unit", [("f16x2", 13, 2.0**-10), ("bf16x2", 16, 2.0**-7)])
def test_random_bits_are_added_below_the_last_place(execute, type_, bits, unit):
    rng = np.random.default_rng(6)
    rest, random = rng.integers(0, 1 << bits, (2, 32)).astype(np.uint32)
    rest[:4], random[:4] = [0, 1, 1, 5], [0xFFFF, (1 << bits) - 1, (1 << bits) - 2, 0]
    a = (1 + unit * rest / (1 << bits)).astype(np.float32)
    got = execute(
        f"cvt.rs.{type_}.f32 %d, %a, %b, %c;", a, -a, random << 16 | (random ^ 1), out=np.uint32
    )
    one = 0x3C00 if type_ == "f16x2" else 0x3F80
    field = (1 << bits) - 1
    for r, s, d in zip(rest.tolist(), random.tolist(), got.tolist(), strict=True):
        assert d >> 16 == one + (r + (s & field) > field)
        assert d & 0xFFFF == 0x8000 | one + (r + (s & field ^ 1) > field)


def test_integers_are_packed_below_8_bits(execute, as_signed, integers):
    """PTX ISA §9.7.9.22"""
    a, b, c = (integers(32, seed) for seed in (7, 8, 9))
    for type_, low, high in (("u4", 0, 15), ("s4", -8, 7), ("u2", 0, 3), ("s2", -2, 1)):
        got = execute(f"cvt.pack.sat.{type_}.s32.b32 %d, %a, %b, %c;", a, b, c, out=np.uint32)
        bits = int(type_[1])
        for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
            fields = [max(low, min(high, as_signed(v, 32))) & (1 << bits) - 1 for v in (x, y)]
            assert d == (z << 2 * bits & 0xFFFFFFFF) | fields[0] << bits | fields[1]

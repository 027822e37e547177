"""Shared by the tests of the PTX core: one-instruction kernels, edge values, exact rounding."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

HEADER = ".version 9.2\n.target sm_100a\n.address_size 64\n"
LANES = 32


def _register(dtype: np.dtype) -> str:
    return f"b{max(16, dtype.itemsize * 8)}"


def one_instruction_kernel(body: str, inputs: list[np.ndarray], out: np.dtype) -> str:
    """A kernel that loads %a, %b, … by lane, runs `body` and stores %d by lane."""
    names = "abcefgh"[: len(inputs)]
    params = ", ".join(f".param .u64 p{name}" for name in (*names, "out"))
    lines = [
        f".visible .entry k({params}) {{",
        ".reg .b64 %base, %at; .reg .b32 %lane;",
        ".reg .pred %p, %q; .reg .b16 %h<8>; .reg .b32 %t<8>; .reg .b64 %w<8>;",
        "mov.u32 %lane, %tid.x;",
        f".reg .{_register(out)} %d;",
    ]
    for name, values in zip(names, inputs, strict=True):
        size = values.dtype.itemsize
        lines += [
            f".reg .{_register(values.dtype)} %{name};",
            f"ld.param.u64 %base, [p{name}];",
            f"mad.wide.u32 %at, %lane, {size}, %base;",
            f"ld.global.b{size * 8} %{name}, [%at];",
        ]
    lines += [
        body,
        "ld.param.u64 %base, [pout];",
        f"mad.wide.u32 %at, %lane, {out.itemsize}, %base;",
        f"st.global.b{out.itemsize * 8} [%at], %d;",
        "ret; }",
    ]
    return HEADER + "\n".join(lines)


@pytest.fixture
def execute():
    """execute(body, *inputs, out=dtype, **options of launch) → the 32 values of %d; inputs are
    arrays of 32."""
    from tilewright.runtime.emulator import launch

    def run(body: str, *inputs: np.ndarray, out, **options) -> np.ndarray:
        dtype = np.dtype(out)
        result = np.frombuffer(bytes([0xCD]) * (LANES * dtype.itemsize), dtype).copy()
        text = one_instruction_kernel(body, list(inputs), dtype)
        launch(text, "k", grid=1, block=LANES, params=[*inputs, result], **options)
        return result

    return run


@pytest.fixture
def trap_of():
    """trap_of(body, …) → the Trap that the same kernel ends with."""
    from tilewright.runtime.emulator import Trap, launch

    def run(body: str, *inputs: np.ndarray, out=np.uint32, **options) -> Trap:
        text = one_instruction_kernel(body, list(inputs), np.dtype(out))
        with pytest.raises(Trap) as caught:
            given = [*inputs, np.zeros(LANES, out)]
            launch(text, "k", grid=1, block=LANES, params=given, **options)
        return caught.value

    return run


EDGES = {
    8: [0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF],
    16: [0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF],
    32: [0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF],
    64: [
        0,
        1,
        2,
        63,
        64,
        65,
        (1 << 63) - 1,
        1 << 63,
        (1 << 63) + 1,
        (1 << 64) - 2,
        (1 << 64) - 1,
        0xFFFFFFFF,
        1 << 32,
        (1 << 53) + 1,
    ],
}


@pytest.fixture
def integers():
    """integers(bits, seed) → 32 unsigned values, edge cases in random positions among random."""

    def make(bits: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng([bits, seed])
        values = rng.integers(0, 1 << bits, LANES, np.uint64 if bits == 64 else f"u{bits // 8}")
        places = rng.permutation(LANES)[: LANES * 3 // 4]
        values[places] = rng.choice(np.array(EDGES[bits], values.dtype), len(places))
        return values

    return make


def signed(value: int, bits: int) -> int:
    """The two's complement value of a pattern."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class FloatFormat:
    """A binary float format by its field widths; rounding by search over its patterns.

    Values are counted in steps of the smallest subnormal, of which each is a multiple: a search of
    64 steps compares integers, which is many times faster than fractions.
    """

    def __init__(self, exponent_bits: int, mantissa_bits: int):
        self.exponent_bits, self.mantissa_bits = exponent_bits, mantissa_bits
        self.bits = 1 + exponent_bits + mantissa_bits
        self.sign = 1 << (self.bits - 1)
        self.infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.step = Fraction(1, 1 << (self.bias + mantissa_bits - 1))

    def decode(self, pattern: int) -> Fraction | float:
        """The exact value of a pattern; a Python float for infinities and NaN."""
        magnitude = int(pattern) & ~self.sign  # a number of numpy would overflow in a shift
        sign = -1 if pattern & self.sign else 1
        if magnitude >= self.infinity:
            return sign * math.inf if magnitude == self.infinity else math.nan
        return sign * self._steps(magnitude) * self.step

    def _steps(self, magnitude: int) -> int:
        exponent = magnitude >> self.mantissa_bits
        fraction = magnitude & ((1 << self.mantissa_bits) - 1)
        return (fraction | 1 << self.mantissa_bits) << (exponent - 1) if exponent else fraction

    def is_nan(self, pattern: int) -> bool:
        return pattern & ~self.sign > self.infinity

    def encode(self, value: Fraction | float, mode: str = "rn", negative_zero: bool = False) -> int:
        """The pattern a value rounds to; modes rn, rz, rm, rp, rna. NaN gives infinity + 1."""
        if isinstance(value, float) and not math.isfinite(value):
            if math.isnan(value):
                return self.infinity + 1
            return self.infinity | (self.sign if value < 0 else 0)
        value = Fraction(value)
        if value == 0:
            return self.sign if negative_zero else 0
        pattern = self._round(abs(value), mode, value < 0)
        return pattern | (self.sign if value < 0 else 0)

    def _round(self, magnitude: Fraction, mode: str, negative: bool) -> int:
        exact = magnitude / self.step
        low = bisect_right(range(self.infinity), int(exact), key=self._steps) - 1
        high = low + 1
        below, above = self._steps(low), self._steps(high)
        if below == exact or mode == "rz" or mode == ("rp" if negative else "rm"):
            return low
        if mode in ("rm", "rp"):
            return high
        twice = 2 * exact - below - above
        if twice == 0:
            return high if mode == "rna" or low & 1 else low
        return high if twice > 0 else low


FORMATS = {
    "f16": FloatFormat(5, 10),
    "bf16": FloatFormat(8, 7),
    "f32": FloatFormat(8, 23),
    "f64": FloatFormat(11, 52),
    "tf32": FloatFormat(8, 10),
}


@pytest.fixture
def formats() -> dict[str, FloatFormat]:
    """The float formats by PTX name."""
    return FORMATS


@pytest.fixture
def floats():
    """floats(name, seed) → 32 patterns of a format: specials, subnormals, ties, random."""

    def make(name: str, seed: int) -> np.ndarray:
        form = FORMATS[name]
        rng = np.random.default_rng([form.bits, seed])
        kind = np.dtype(f"u{form.bits // 8}")
        one = form.bias << form.mantissa_bits
        edges = [
            0,
            form.sign,
            1,
            form.sign | 1,
            form.infinity,
            form.infinity | form.sign,
            form.infinity - 1,
            form.infinity | 1 << (form.mantissa_bits - 1),
            one,
            one | form.sign,
            one + 1,
            (1 << form.mantissa_bits) - 1,
            1 << form.mantissa_bits,
        ]
        spread = rng.normal(size=LANES) * 10.0 ** rng.integers(-3, 4, LANES)
        values = np.array([form.encode(Fraction(float(x))) for x in spread], kind)
        places = rng.permutation(LANES)[: LANES * 5 // 8]
        values[places] = rng.choice(np.array(edges, kind), len(places))
        return values

    return make


@pytest.fixture
def same_float():
    """same_float(format, got, wanted): equal patterns, or both NaN."""

    def compare(form: FloatFormat, got: int, wanted: int) -> bool:
        return got == wanted or (form.is_nan(got) and form.is_nan(wanted))

    return compare


@pytest.fixture
def as_signed():
    """as_signed(value, bits): two's complement."""
    return signed

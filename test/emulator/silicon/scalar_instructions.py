"""Instructions of one thread whose result PTX fixes to the bit, on random and special operands.

In a line of PTX, a b c d name 32-bit, A B C D 64-bit, x y z w 16-bit operands in braces, d D w the
results; s t S h are operands that only hold edges, of which approximations too have exact results.
What PTX calls undefined is left out (division by zero).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
from silicon_case import Case, generator, kernel, moves

THREADS, WORDS = 256, 6
NAMES = {"a": "%r0", "b": "%r2", "c": "%r4", "d": "%r100", "A": "%w0", "B": "%w1", "C": "%w2",
         "D": "%w50", "x": "%h0", "y": "%h2", "z": "%h4", "w": "%h10",
         "s": "%r0", "t": "%r2", "S": "%w0", "h": "%h0"}  # fmt: skip
_UNPACK = "".join(
    f"mov.b64 %w{i // 2}, {{%r{i}, %r{i + 1}}}; mov.b32 {{%h{i}, %h{i + 1}}}, %r{i};\n"
    for i in (0, 2, 4)
)
_ANY_TYPE = re.compile(r"[bfsu]\d+(x2)?|bf16(x2)?")
_BY_WIDTH = {
    16: {"q": "{w}", "qa": "{x}", "qb": "{y}"},
    32: {"q": "{d}", "qa": "{a}", "qb": "{b}"},
    64: {"q": "{D}", "qa": "{A}", "qb": "{B}"},
}
_TYPE = re.compile(r"e\dm\dx2|[bt]?f\d+(x2)?|[su]\d+")


def scalar_instructions() -> Iterator[Case]:
    """A case an instruction."""
    for line in map(_sized, lines_of(TABLE)):
        rng = generator(line)
        words = np.stack([interesting(rng, THREADS) for _ in range(WORDS)], axis=1)
        if re.search(r"{[sSh]}", line):
            words = _edges(rng, line)
        if ".oob" in line:  # what a tensor copy fills in for elements outside
            words = np.where(rng.random(words.shape) < 0.2, np.uint32(0x7FF73C00), words)
            words = np.where(rng.random(words.shape) < 0.2, np.uint32(0x40007FF7), words)
        text = "".join(NAMES.get(part, part) for part in line.replace("}", "{").split("{"))
        body = ".reg .b16 %h<16>; .reg .pred %s, %v;\n" + moves("ld", 0, WORDS, 0) + _UNPACK
        body += f"mov.b64 %w50, 0; mov.b16 %h10, 0; mov.b32 %r100, 0; mov.b32 %r101, 0;\n{text};\n"
        body += "mov.b64 {%r100, %r101}, %w50;\n" if "{D}" in line else ""
        body += "cvt.u32.u16 %r100, %h10;\n" if "{w}" in line else ""
        yield Case(line, kernel(body, WORDS, 2), np.zeros(4, np.uint8), words, 2, _nan_type(line))


def _sized(line: str) -> str:
    """A result {q} and operands {qa}, {qb} as wide as the first and the last type of the opcode."""
    if "{q" not in line:
        return line
    types = [each for each in line.partition(" ")[0].split(".") if _ANY_TYPE.fullmatch(each)]
    for name, type_ in (("q", types[0]), ("qa", types[-1]), ("qb", types[-1])):
        width = int(type_.partition("x")[0].lstrip("bfsu")) * (2 if "x2" in type_ else 1)
        narrow = 16 if name != "q" and width == 8 else width
        line = line.replace(f"{{{name}}}", _BY_WIDTH.get(narrow, _BY_WIDTH[32])[name])
    return line


def _nan_type(line: str) -> str | None:
    """The type of a result whose NaN PTX leaves open; min and max of f64 have many in hardware."""
    opcode, *modifiers = line.partition(" ")[0].split(".")
    type_ = next((each for each in modifiers if _TYPE.fullmatch(each)), "")
    narrow = opcode in ("min", "max") and type_ != "f64"
    arithmetic = opcode in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt", "min", "max", "neg",
                            "abs", "cvt", "ex2", "lg2", "tanh", "sin", "cos",
                            "rsqrt")  # fmt: skip
    return type_ if arithmetic and not narrow and "f" in type_ else None


def interesting(rng: np.random.Generator, count: int) -> np.ndarray:
    """uint32[count]: bits, special and ordinary floats of each width, small integers."""
    normal = rng.standard_normal(count) * 2.0 ** rng.integers(-12, 13, count)
    halves = rng.standard_normal((count, 2)) * 2.0 ** rng.integers(-10, 9, (count, 2))
    exponents = rng.integers(1023 - 40, 1023 + 40, count) << 20
    kinds = [
        rng.integers(0, 1 << 32, count, np.uint32),
        normal.astype(np.float32).view(np.uint32),
        halves.astype(np.float16).view(np.uint32)[:, 0],
        (exponents | rng.integers(0, 1 << 20, count)).astype(np.uint32),
        rng.choice(_special_words(), count),
        rng.integers(-40, 40, count).astype(np.int32).view(np.uint32),
    ]
    return np.choose(rng.integers(0, len(kinds), count), kinds).astype(np.uint32)


def _edges(rng: np.random.Generator, line: str) -> np.ndarray:
    """uint32[THREADS, WORDS]: zeros, infinities, NaN, subnormals and the largest numbers alone."""
    edges = [0, 1, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x3F800000]
    if "{h}" in line:
        least, top = (0x80, 0x7F80) if "bf16" in line else (0x400, 0x7C00)
        edges = [0, 1, least - 1, top - 1, top, top + 1]
    if "{S}" in line:
        edges = [0, 0x000FFFFF, 0x00000001, 0x7FEFFFFF, 0x7FF00000, 0x7FF80000]
    sign = 0x8000 if "{h}" in line else 0x80000000
    drawn = rng.choice(np.array(edges, np.uint32), (THREADS, WORDS))
    drawn[:, 1::2] ^= sign * rng.integers(0, 2, (THREADS, 3), np.uint32)
    drawn[:, 0::2] ^= sign * rng.integers(0, 2, (THREADS, 3), np.uint32)
    if "{S}" in line:  # the low word of f64
        drawn[:, 0] = 0
    return drawn


def _special_words() -> np.ndarray:
    wide = np.array([0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 448, 464, 480, 57344, 61440, 65504,
                     65520, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 1e-45, 1.1e-38, 3.4e38,
                     np.inf, -np.inf, np.nan], np.float32).view(np.uint32)  # fmt: skip
    halves = np.array([0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00,
                       0x7F80, 0xFF80, 0x7FC0, 0x3C00, 0x3F80, 0x0080], np.uint32)  # fmt: skip
    whole = np.array([0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FF00000, 0xFFF00000, 0x7FF80000,
                      0x00100000, 0x000FFFFF], np.uint32)  # fmt: skip
    return np.concatenate([wide, halves | np.roll(halves, 1) << 16, whole])


def lines_of(table: str) -> Iterator[str]:
    """Each line of a table with one choice of each <x|y>."""
    for line in filter(None, map(str.strip, table.splitlines())):
        parts = re.split(r"<(.*?)>", line)
        choices = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
        yield from map("".join, itertools.product(*choices))


TABLE = """
<add|mul>.<rn|rz|rm|rp><|.ftz|.sat|.ftz.sat>.f32 {d}, {a}, {b}
fma.<rn|rz|rm|rp><|.ftz|.sat|.ftz.sat>.f32 {d}, {a}, {b}, {c}
div.<rn|rz|rm|rp><|.ftz>.f32 {d}, {a}, {b}
<rcp|sqrt>.<rn|rz|rm|rp><|.ftz>.f32 {d}, {a}
<add|sub|mul|div>.<rn|rz|rm|rp>.f64 {D}, {A}, {B}
fma.<rn|rz|rm|rp>.f64 {D}, {A}, {B}, {C}
sqrt.<rn|rz|rm|rp>.f64 {D}, {A}
<min|max><|.ftz|.NaN|.ftz.NaN|.xorsign.abs|.NaN.xorsign.abs>.f32 {d}, {a}, {b}
<min|max|copysign>.f64 {D}, {A}, {B}
copysign.f32 {d}, {a}, {b}
testp.<finite|infinite|number|notanumber|normal|subnormal>.f32 %s, {a}; selp.b32 {d}, 1, 0, %s
setp.<lt|ge|ne|ltu|geu|neu|num|nan>.f32 %s, {a}, {b}; selp.b32 {d}, 1, 0, %s
set.<lt|ge|ne|ltu|geu|neu|num|nan>.f32.f32 {d}, {a}, {b}
setp.<lt|ge|ne|ltu|geu|neu|num|nan>.f16 %s, {x}, {y}; selp.b32 {d}, 1, 0, %s
setp.<lt|ge|ne|ltu|geu|neu|num|nan>.bf16x2 %s|%v, {a}, {b}; selp.b32 {d}, 1, 0, %v

<add|sub|mul>.rn<|.ftz|.sat|.ftz.sat>.f16 {w}, {x}, {y}
<add|sub|mul>.rn<|.ftz|.sat|.ftz.sat>.f16x2 {d}, {a}, {b}
<add|sub|mul>.rn.bf16 {w}, {x}, {y}
<add|sub|mul>.rn.bf16x2 {d}, {a}, {b}
fma.rn<|.relu|.ftz|.sat|.ftz.sat>.f16 {w}, {x}, {y}, {z}
fma.rn<|.relu|.ftz|.sat|.ftz.sat>.f16x2 {d}, {a}, {b}, {c}
fma.rn<|.relu>.bf16 {w}, {x}, {y}, {z}
fma.rn<|.relu>.bf16x2 {d}, {a}, {b}, {c}
<min|max><|.NaN|.xorsign.abs|.NaN.xorsign.abs>.<f16|bf16> {w}, {x}, {y}
<min|max><|.NaN|.xorsign.abs|.NaN.xorsign.abs>.<f16x2|bf16x2> {d}, {a}, {b}
<min|max>.ftz.f16 {w}, {x}, {y}
<min|max>.ftz.f16x2 {d}, {a}, {b}
<neg|abs>.<f16|bf16> {w}, {x}
<neg|abs>.<f16x2|bf16x2> {d}, {a}

cvt.<rn|rz><|.relu>.<f16|bf16>.f32 {w}, {a}
cvt.<rn|rz><|.relu>.<f16x2|bf16x2>.f32 {d}, {a}, {b}
cvt.<rn|rz><|.relu>.tf32.f32 {d}, {a}
cvt.rna.tf32.f32 {d}, {a}
cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f32 {w}, {a}, {b}
cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f16x2 {w}, {a}
cvt.rn<|.relu>.f16x2.<e4m3x2|e5m2x2> {d}, {x}
cvt.<rni|rzi|rmi|rpi>.<s32|u32|s8|u8|s16|u16>.f32 {d}, {a}
cvt.<rni|rzi|rmi|rpi>.<s64|u64>.f32 {D}, {a}
cvt.<rni|rzi|rmi|rpi>.<s64|u64>.f64 {D}, {A}
cvt.<rni|rzi|rmi|rpi>.s32.f64 {d}, {A}
cvt.<rni|rzi|rmi|rpi>.s32.f16 {d}, {x}
cvt.<rni|rzi|rmi|rpi><|.ftz>.f32.f32 {d}, {a}
cvt.<rni|rzi|rmi|rpi>.f16.f16 {w}, {x}
cvt.<rn|rz|rm|rp>.f32.<s32|u32|u8> {d}, {a}
cvt.<rn|rz|rm|rp>.f32.s16 {d}, {x}
cvt.<rn|rz|rm|rp>.f32.<s64|f64> {d}, {A}
cvt.<rn|rz|rm|rp>.f64.u64 {D}, {A}
cvt.<rn|rz|rm|rp>.f16.s32 {w}, {a}
cvt.<rn|rz|rm|rp>.f16.f64 {w}, {A}
cvt.rn.sat.f16.f32 {w}, {a}
cvt.f32.<f16|bf16> {d}, {x}
cvt<|.ftz>.f64.f32 {D}, {a}
cvt.sat.f32.f32 {d}, {a}
cvt.sat.<s8|u8|s16|u16|u32>.s32 {d}, {a}
cvt.sat.<s8|u8|s16|u16>.u32 {d}, {a}
cvt.s64.s32 {D}, {a}
cvt.u32.s8 {d}, {a}
cvt.pack.sat.<s8|u8>.s32.b32 {d}, {a}, {b}, {c}
cvt.pack.sat.<s16|u16>.s32 {d}, {a}, {b}

<mul.lo|mul.hi|min|max|mul24.lo|mul24.hi>.<u|s>32 {d}, {a}, {b}
<mad.lo|mad.hi|mad24.lo|mad24.hi|sad>.<u|s>32 {d}, {a}, {b}, {c}
or.b32 {b}, {b}, 1; <div|rem>.<u|s>32 {d}, {a}, {b}
or.b64 {B}, {B}, 1; <div|rem>.<u|s>64 {D}, {A}, {B}
mul.wide.<u|s>32 {D}, {a}, {b}
mad.wide.<u|s>32 {D}, {a}, {b}, {C}
mul.wide.<u|s>16 {d}, {x}, {y}
mul.hi.<u|s>64 {D}, {A}, {B}
<min|max|add>.<u|s>16x2 {d}, {a}, {b}
<dp4a|dp2a.lo|dp2a.hi>.<u|s>32.<u|s>32 {d}, {a}, {b}, {c}
<add|sub>.sat.s32 {d}, {a}, {b}
mad.hi.sat.s32 {d}, {a}, {b}, {c}
min.relu.s32 {d}, {a}, {b}
max.relu.s16x2 {d}, {a}, {b}
abs.s32 {d}, {a}
neg.s16 {w}, {x}
add.cc.u32 {d}, {a}, {b}; addc.u32 {d}, {c}, {d}
sub.cc.u32 {d}, {a}, {b}; subc.u32 {d}, {c}, {d}
mad.lo.cc.u32 {d}, {a}, {b}, {c}; madc.hi.u32 {d}, {a}, {b}, {d}
slct.s32.s32 {d}, {a}, {b}, {c}
slct.ftz.u32.f32 {d}, {a}, {b}, {c}

lop3.b32 {d}, {a}, {b}, {c}, <27|150|202|232>
prmt.b32<|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16> {d}, {a}, {b}, {c}
shf.<l|r>.<clamp|wrap>.b32 {d}, {a}, {b}, {c}
shl.b32 {d}, {a}, {c}
shl.b64 {D}, {A}, {c}
shr.<u|s>32 {d}, {a}, {c}
shr.<u|s>64 {D}, {A}, {c}
and.b32 {b}, {b}, 255; and.b32 {c}, {c}, 255; bfe.<u|s>32 {d}, {a}, {b}, {c}
and.b32 {b}, {b}, 255; and.b32 {c}, {c}, 255; bfe.<u|s>64 {D}, {A}, {b}, {c}
and.b32 {b}, {b}, 255; and.b32 {c}, {c}, 255; bfi.b32 {d}, {a}, %r1, {b}, {c}
and.b32 {b}, {b}, 255; and.b32 {c}, {c}, 255; bfi.b64 {D}, {A}, {B}, {b}, {c}
bfind<|.shiftamt>.<u|s>32 {d}, {a}
bfind<|.shiftamt>.<u|s>64 {d}, {A}
<popc|clz>.b32 {d}, {a}
<popc|clz>.b64 {d}, {A}
<brev|cnot>.b32 {d}, {a}
<brev|cnot>.b64 {D}, {A}
bmsk.<clamp|wrap>.b32 {d}, {a}, {b}
szext.<clamp|wrap>.<u|s>32 {d}, {a}, {b}

<add|sub|mul.lo|mul.hi|min|max>.<u|s>16 {w}, {x}, {y}
<add|sub|mul.lo|min|max>.<u|s>64 {D}, {A}, {B}
mad.lo.<u|s>16 {w}, {x}, {y}, {z}
<mad.lo|mad.hi|sad>.<u|s>64 {D}, {A}, {B}, {C}
mad.wide.<u|s>16 {d}, {x}, {y}, {c}
sad.<u|s>16 {w}, {x}, {y}, {z}
or.b16 {y}, {y}, 1; <div|rem>.<u|s>16 {w}, {x}, {y}
add.cc.u64 {D}, {A}, {B}; addc.u64 {D}, {C}, {D}
sub.cc.s64 {D}, {A}, {B}; subc.u64 {D}, {C}, {D}
add.cc.s32 {d}, {a}, {b}; addc.cc.u32 {d}, {c}, {d}; addc.u32 {d}, {d}, {a}
sub.cc.u32 {d}, {a}, {b}; subc.cc.u32 {d}, {c}, {d}; subc.u32 {d}, {d}, {a}
mad.lo.cc.u64 {D}, {A}, {B}, {C}; madc.hi.u64 {D}, {A}, {B}, {D}
mad.hi.cc.s32 {d}, {a}, {b}, {c}; madc.lo.cc.s32 {d}, {a}, {c}, {d}; addc.u32 {d}, {d}, 0
<abs|neg>.s64 {D}, {A}
abs.s16 {w}, {x}
neg.s32 {d}, {a}
<min|max>.<s16x2|u16x2> {d}, {a}, {b}
<min|max>.relu.<s32|s16x2> {d}, {a}, {b}
setp.<eq|ne|lt|le|gt|ge>.s32 %s, {a}, {b}; selp.b32 {d}, 1, 0, %s
setp.<eq|lo|ls|hi|hs>.u32 %s, {a}, {b}; selp.b32 {d}, 1, 0, %s
setp.<lt|ge>.<u|s>64 %s, {A}, {B}; selp.b64 {D}, {A}, {C}, %s
setp.<lt|hi>.u16 %s, {x}, {y}; selp.b16 {w}, {x}, {z}, %s
setp.<lt|geu|equ|nan>.f64 %s, {A}, {B}; selp.f64 {D}, {A}, {C}, %s
setp.lt.<and|or|xor>.s32 %s|%v, {a}, {b}, %on; selp.b32 {d}, 1, 0, %v
setp.lt.<and|or|xor>.f32 %s|%v, {a}, {b}, !%on; selp.b32 {d}, 1, 0, %v
setp.<equ|gtu|leu|ltu>.ftz.f32 %s, {a}, {b}; selp.b32 {d}, 1, 0, %s
set.<lt|ge|eq>.<u32|s32|f32>.<s32|u32> {d}, {a}, {b}
set.<lt|equ|nan>.<u32|s32>.<f32|f16> {d}, {qa}, {qb}
set.lt.<f16|bf16>.f16 {w}, {x}, {y}
set.lt.bf16.bf16 {w}, {x}, {y}
set.<le|gtu>.f16x2.f16x2 {d}, {a}, {b}
slct.b16.s32 {w}, {x}, {y}, {c}
slct.b64.s32 {D}, {A}, {B}, {c}
slct.f32.f32 {d}, {a}, {b}, {c}

<neg|abs><|.ftz>.f32 {d}, {a}
<neg|abs>.f64 {D}, {A}
<neg|abs>.ftz.f16x2 {d}, {a}
testp.<finite|infinite|number|notanumber|normal|subnormal>.f64 %s, {A}; selp.b32 {d}, 1, 0, %s
rcp.<rn|rz|rm|rp>.f64 {D}, {A}
sub.<rn|rz|rm|rp><|.ftz|.sat|.ftz.sat>.f32 {d}, {a}, {b}
fma.rn.oob<|.relu>.<f16x2|bf16x2> {d}, {a}, {b}, {c}
min.ftz.xorsign.abs.f32 {d}, {a}, {b}
<min|max>.ftz.NaN<|.xorsign.abs>.f16x2 {d}, {a}, {b}

cvt.<s8|u8|s16|u16|s64|u64>.<s32|u32> {q}, {a}
cvt.<s8|u8|s16|u16|s32|u32>.<s64|u64> {q}, {A}
cvt.sat.<s8|u8|s16|u16|s32|u32|u64>.s64 {q}, {A}
cvt.sat.<s8|u8|s16|u16|s32|u32|s64>.u64 {q}, {A}
cvt.<s8|s16|u16|s32|u32|s64|u64>.<s8|u8> {q}, {x}
cvt.sat.<u8|u16>.s8 {q}, {x}
cvt.<rni|rzi><|.sat>.<s8|u8|s16|u16|s32|u32|s64|u64>.f64 {q}, {A}
cvt.<rni|rzi|rmi|rpi>.<s8|u8|s16|u16|u32|s64|u64>.f16 {q}, {x}
cvt.<rni|rzi>.ftz.<s32|u32|s64>.f32 {q}, {a}
cvt.<rni|rzi|rmi|rpi>.f64.f64 {D}, {A}
cvt.<rni|rzi|rmi|rpi>.sat.f32.f32 {d}, {a}
cvt.<rn|rz|rm|rp>.f16.<s8|u8|s16|u16> {w}, {x}
cvt.<rn|rz|rm|rp>.f16.<u32|u64|s64> {w}, {qa}
cvt.<rn|rz|rm|rp>.f64.s64 {D}, {A}
cvt.rn.f64.<s32|u32> {D}, {a}
cvt.f64.f16 {D}, {x}
cvt.<rn|rz|rm|rp>.f32.<u64> {d}, {A}
cvt.<rn|rz|rm|rp><.ftz|.sat|.ftz.sat>.f32.f64 {d}, {A}
cvt.<rm|rp>.f16.<f32|f64> {w}, {qa}
cvt.rn.sat.f16.f64 {w}, {A}
cvt.<rn|rz|rm|rp>.bf16.<s32|u32|s64|u64|f16|f64> {w}, {qa}
cvt.<rni|rzi|rmi|rpi>.<s32|u32|s64|s16>.bf16 {q}, {x}
cvt.rn.bf16.<s16|u16> {w}, {x}
cvt.<rn|rz|rm|rp>.f16.bf16 {w}, {x}
cvt.<rn|rz>.satfinite<|.relu>.<f16|bf16>.f32 {w}, {a}
cvt.<rn|rz>.satfinite<|.relu>.<f16x2|bf16x2>.f32 {d}, {a}, {b}
cvt.rna.satfinite.tf32.f32 {d}, {a}
cvt.pack.sat.<u4|s4|u2|s2>.s32.b32 {d}, {a}, {b}, {c}
prmt.b32 {d}, {a}, {b}, <0x3210|0x7654|0x89ab|0xfedc|0xc840|0x1357>
lop3.b32 {d}, {a}, {b}, {c}, <0|1|2|4|8|16|32|64|128|0x1b|0x96|0xe8|0xca|0xff|0xfe>
lop3.or.b32 {d}|%s, {a}, {b}, {c}, 0x60, %on
not.<b16|b32|b64> {q}, {qa}
cnot.b16 {w}, {x}
<and|or|xor>.<b16|b32|b64> {q}, {qa}, {qb}
shl.b16 {w}, {x}, {c}
shr.<u|s|b>16 {w}, {x}, {c}
shr.b<32|64> {q}, {qa}, {c}
<add|sub|mul>.<f16|f16x2|bf16|bf16x2> {q}, {qa}, {qb}

ex2.approx.f32 {d}, {s}
ex2.approx.ftz.f32 {d}, {s}
<rcp|sqrt>.approx<|.ftz>.f32 {d}, {s}
rsqrt.approx.ftz.f32 {d}, {s}
rcp.approx.ftz.f64 {D}, {S}
rsqrt.approx.ftz.f64 {D}, {S}
div.<approx|full><|.ftz>.f32 {d}, {s}, {t}
tanh.approx.<f16|bf16> {w}, {h}
ex2.approx.ftz.bf16 {w}, {h}
"""

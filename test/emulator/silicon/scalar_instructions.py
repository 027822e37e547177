"""Instructions of one thread whose result PTX fixes to the bit, on random and special operands.

In a line of PTX, a b c d name 32-bit, A B C D 64-bit, x y z w 16-bit operands in braces, d D w the
results. Approximations are left out, and what PTX calls undefined (division by zero).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
from silicon_case import Case, generator, kernel, moves

THREADS, WORDS = 256, 6
NAMES = {"a": "%r0", "b": "%r2", "c": "%r4", "d": "%r100", "A": "%w0", "B": "%w1", "C": "%w2",
         "D": "%w50", "x": "%h0", "y": "%h2", "z": "%h4", "w": "%h10"}  # fmt: skip
_UNPACK = "".join(
    f"mov.b64 %w{i // 2}, {{%r{i}, %r{i + 1}}}; mov.b32 {{%h{i}, %h{i + 1}}}, %r{i};\n"
    for i in (0, 2, 4)
)
_TYPE = re.compile(r"e\dm\dx2|[bt]?f\d+(x2)?|[su]\d+")


def scalar_instructions() -> Iterator[Case]:
    """A case an instruction."""
    for line in _lines():
        rng = generator(line)
        words = np.stack([_interesting(rng) for _ in range(WORDS)], axis=1)
        text = "".join(NAMES.get(part, part) for part in line.replace("}", "{").split("{"))
        body = ".reg .b16 %h<16>; .reg .pred %s, %v;\n" + moves("ld", 0, WORDS, 0) + _UNPACK
        body += f"mov.b64 %w50, 0; mov.b16 %h10, 0; mov.b32 %r100, 0; mov.b32 %r101, 0;\n{text};\n"
        body += "mov.b64 {%r100, %r101}, %w50;\n" if "{D}" in line else ""
        body += "cvt.u32.u16 %r100, %h10;\n" if "{w}" in line else ""
        yield Case(line, kernel(body, WORDS, 2), np.zeros(4, np.uint8), words, 2, _nan_type(line))


def _nan_type(line: str) -> str | None:
    """The type of a result whose NaN PTX leaves open; min and max of f64 have many in hardware."""
    opcode, *modifiers = line.partition(" ")[0].split(".")
    type_ = next((each for each in modifiers if _TYPE.fullmatch(each)), "")
    narrow = opcode in ("min", "max") and type_ != "f64"
    arithmetic = opcode in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt", "min", "max", "neg",
                            "abs", "cvt")  # fmt: skip
    return type_ if arithmetic and not narrow and "f" in type_ else None


def _interesting(rng: np.random.Generator) -> np.ndarray:
    """uint32[THREADS]: bits, special and ordinary floats of each width, small integers."""
    normal = rng.standard_normal(THREADS) * 2.0 ** rng.integers(-12, 13, THREADS)
    halves = rng.standard_normal((THREADS, 2)) * 2.0 ** rng.integers(-10, 9, (THREADS, 2))
    exponents = rng.integers(1023 - 40, 1023 + 40, THREADS) << 20
    kinds = [
        rng.integers(0, 1 << 32, THREADS, np.uint32),
        normal.astype(np.float32).view(np.uint32),
        halves.astype(np.float16).view(np.uint32)[:, 0],
        (exponents | rng.integers(0, 1 << 20, THREADS)).astype(np.uint32),
        rng.choice(_special_words(), THREADS),
        rng.integers(-40, 40, THREADS).astype(np.int32).view(np.uint32),
    ]
    return np.choose(rng.integers(0, len(kinds), THREADS), kinds).astype(np.uint32)


def _special_words() -> np.ndarray:
    wide = np.array([0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 448, 464, 480, 57344, 61440, 65504,
                     65520, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 1e-45, 1.1e-38, 3.4e38,
                     np.inf, -np.inf, np.nan], np.float32).view(np.uint32)  # fmt: skip
    halves = np.array([0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00,
                       0x7F80, 0xFF80, 0x7FC0, 0x3C00, 0x3F80, 0x0080], np.uint32)  # fmt: skip
    whole = np.array([0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FF00000, 0xFFF00000, 0x7FF80000,
                      0x00100000, 0x000FFFFF], np.uint32)  # fmt: skip
    return np.concatenate([wide, halves | np.roll(halves, 1) << 16, whole])


def _lines() -> Iterator[str]:
    """Each line of the table with one choice of each <x|y>."""
    for line in filter(None, map(str.strip, TABLE.splitlines())):
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
"""

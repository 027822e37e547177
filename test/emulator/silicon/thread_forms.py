"""Every form of the instructions of a thread that PTX has and `sm_90a` computes to the bit.

One kernel holds the forms of a line, up to 32, on the same random and special operands. `q` is the
result and `p` a predicate, `v` the second one of a pair; `a b c` are operands of its type, `w` one
of the result's, `e` two of f32, `m n` words that are numbers below 70 now and then, `P` a random
predicate. `LEFT_OUT` names what is not compared. test/fuzz/ptx_forms.txt has the same forms beside
those that are no PTX, and a test holds the two to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from scalar_instructions import interesting, lines_of
from silicon_case import Case, generator

PER_KERNEL, THREADS, WORDS = 32, 256, 8
LEFT_OUT = {
    r"(sin|cos|lg2|ex2|tanh|rsqrt)\.|.*\.(approx|full)": "approximate: PTX gives bounds",
    r"cvt\..*(\.[su]8\.bf16|bf16\.[su]8)": "ptxas wants registers of 8 bits",
    r"cvt\.r[mp]\.ftz(\.sat)?\.f16\.f32": "an H200 rounds away from zero what .ftz takes for zero",
    r"fns\.": "ptxas makes a loop of it, which gives something else for offsets beyond the word",
    r"mov\.|isspacep\.": "other kernels here use it throughout",
}
"""By what an opcode begins with, why silicon says nothing of it."""
_TYPE = re.compile(r"[busf]\d+(x2)?|bf16(x2)?|tf32|pred|e\dm\dx2")
_OPERAND = {"a": 1, "b": 2, "c": 3, "w": 3}
_OWN = {"p": "%p5", "v": "%p4", "P": "%p6", "m": "%r3", "n": "%r4", "e": "%r1, %r2"}
_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 words, .param .u64 out) {
.reg .b16 %h<16>; .reg .b32 %r<32>, %t; .reg .b64 %d<16>, %in, %to; .reg .pred %p<16>;
ld.param.u64 %in, [words]; ld.param.u64 %to, [out]; mov.u32 %t, %tid.x;
"""
_LOADED = "".join(f"ld.global.b32 %r{i + 1}, [%in+{4 * i}]; " for i in range(WORDS)) + "\n"
_OPERANDS = (
    "mov.b64 %d1, {%r1, %r2}; mov.b64 %d2, {%r3, %r4}; mov.b64 %d3, {%r5, %r6};\n"
    + "".join(f"mov.b32 {{%h{i}, %h4}}, %r{i}; " for i in (1, 2, 3))
    + "".join(
        f"and.b32 %r20, %r8, {1 << bit}; setp.ne.u32 %p{number}, %r20, 0; "
        for bit, number in enumerate((6, 1, 2, 3))
    )
    + "\nmov.b64 %d7, 0; mov.b16 %h7, 0; mov.b16 %h8, 0;"
    + " mov.b32 %r7, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;\n"
)
_NOT_ZERO = {"h": "or.b16 %h2, %h2, 1; ", "r": "or.b32 %r2, %r2, 1; ", "d": "or.b64 %d2, %d2, 1; "}
_STORED = {
    "h": "mov.b32 %r20, {%h7, %h8}; mov.b32 %r21, 0; ",
    "r": "mov.b32 %r20, %r7; mov.b32 %r21, 0; ",
    "d": "mov.b64 {%r20, %r21}, %d7; ",
    "p": "selp.u32 %r20, 1, 0, %p7; mov.b32 %r21, 0; ",
}
_OF_NUMBERS = ("popc", "clz", "bfind", "dp4a", "dp2a")
_ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "neg", "abs", "cvt")


def thread_forms() -> Iterator[Case]:
    """A case for up to 32 forms of a line whose results have one kind of NaN."""
    for line in filter(None, map(str.strip, TABLE.splitlines())):
        groups: dict[str | None, list[str]] = {}
        for form in lines_of(line):
            groups.setdefault(_nan_type(form.partition(" ")[0]), []).append(form)
        for nan_type, forms in groups.items():
            for start in range(0, len(forms), PER_KERNEL):
                part = forms[start : start + PER_KERNEL]
                title = f"{line} ({len(part)} from {part[0].partition(' ')[0]})"
                yield _case(title, part, nan_type)


def compared_opcodes() -> set[str]:
    """Those of all forms."""
    return {form.partition(" ")[0] for form in lines_of(TABLE)}


def _case(title: str, forms: list[str], nan_type: str | None) -> Case:
    rng = generator(title)
    words = np.stack([interesting(rng, THREADS) for _ in range(WORDS)], axis=1)
    small, same = rng.random(THREADS) < 0.6, rng.random(THREADS) < 0.15
    words[small, 2:4] = rng.integers(0, 70, (THREADS, 2)).astype(np.uint32)[small]
    words[same, 1] = words[same, 0]
    text = _HEAD + f"mad.wide.u32 %in, %t, {4 * WORDS}, %in; "
    text += f"mad.wide.u32 %to, %t, {16 * len(forms)}, %to;\n" + _LOADED
    text += "".join(_text_of(form, 16 * at) for at, form in enumerate(forms)) + "ret;\n}\n"
    return Case(title, text, np.zeros(4, np.uint8), words, 4 * len(forms), nan_type)


def _text_of(form: str, place: int) -> str:
    """A form, what makes its operands, and a store of four words."""
    opcode, _, operands = form.partition(" ")
    result, own = _widths(opcode)
    names = []
    for letter in re.split(r"(\W+)", operands):
        width = result if letter in "qw" else own
        number = 7 if letter == "q" else _OPERAND.get(letter)
        names.append(f"%{width}{number}" if number else _OWN.get(letter, letter))
    text = _OPERANDS + _before(opcode, own) + f"{opcode} {''.join(names)};\n"
    if ".cc." in opcode:
        text += f"{'subc' if opcode.startswith('sub') else 'addc'}.u32 %r22, 0, 0;\n"
    if "p" in operands:
        text += "selp.u32 %r22, 1, 0, %p5;\n"
    if "v" in operands:
        text += "selp.u32 %r23, 1, 0, %p4;\n"
    text += _STORED[result] if "q" in operands else _STORED["r"]
    return text + f"st.global.v4.b32 [%to+{place}], {{%r20, %r21, %r22, %r23}};\n"


def _before(opcode: str, own: str) -> str:
    """What gives an instruction a carry, or operands for which PTX says what it does."""
    name, *modifiers = opcode.split(".")
    if name in ("div", "rem") and modifiers[-1][0] in "us":
        return _NOT_ZERO[own]
    if name in ("bfe", "bfi"):
        return "and.b32 %r3, %r3, 255; and.b32 %r4, %r4, 255; "
    if name in ("addc", "madc", "subc"):
        return f"{'sub' if name == 'subc' else 'add'}.cc.u32 %r20, %r5, %r6; "
    return ""


def _widths(opcode: str) -> tuple[str, str]:
    """The registers of the result and of the operands."""
    name, types = opcode.partition(".")[0], _types(opcode)
    own = _register(types[-1] if name in ("cvt", "set") else types[0])
    if name in _OF_NUMBERS or opcode.startswith("cvt.pack"):
        return "r", "r" if name.startswith(("dp", "cvt")) else own
    if ".wide." in opcode:
        return {"h": "r", "r": "d"}[own], own
    return _register(types[0]), own


def _types(opcode: str) -> list[str]:
    return [each for each in opcode.split(".") if _TYPE.fullmatch(each)]


def _register(type_: str) -> str:
    if type_ in ("pred", "tf32") or type_[0] == "e":
        return {"pred": "p", "tf32": "r"}.get(type_, "h")
    bits = int(type_.partition("x")[0].lstrip("bfsu")) * (2 if "x2" in type_ else 1)
    return {8: "h", 16: "h", 32: "r", 64: "d"}[bits]


def _nan_type(opcode: str) -> str | None:
    """The type of a result whose NaN PTX leaves open."""
    name, first = opcode.partition(".")[0], _types(opcode)[0]
    is_float = first.startswith(("f", "bf", "tf"))
    if name in ("min", "max"):
        return first if first == "f64" else None
    return {"tf32": "f32"}.get(first, first) if name in _ARITHMETIC and is_float else None


TABLE = """
add.<u16|u32|u64|s16|s32|s64|u16x2|s16x2> q, a, b
<add|sub>.cc.<u32|u64|s32|s64> q, a, b
<add|sub>.sat.s32 q, a, b
sub.<u16|u32|u64|s16|s32|s64> q, a, b
<add|sub><|.rn>.<f16|f16x2|bf16|bf16x2> q, a, b
<add|sub><|.rn|.rz|.rm|.rp>.<f32|f64> q, a, b
<add|sub><|.rn><|.ftz>.sat.<f16|f16x2> q, a, b
<add|sub><|.rn|.rz|.rm|.rp><|.ftz>.sat.f32 q, a, b
<add|sub><|.rn>.ftz.<f16|f16x2> q, a, b
<add|sub><|.rn|.rz|.rm|.rp>.ftz.f32 q, a, b
<addc|subc><|.cc>.<u32|u64|s32|s64> q, a, b
mul<.lo|.hi>.<u16|u32|u64|s16|s32|s64> q, a, b
mul.wide.<u16|u32|s16|s32> q, a, b
mul<|.rn>.<f16|f16x2|bf16|bf16x2> q, a, b
mul<|.rn|.rz|.rm|.rp>.<f32|f64> q, a, b
mul<|.rn><|.ftz>.sat.<f16|f16x2> q, a, b
mul<|.rn|.rz|.rm|.rp><|.ftz>.sat.f32 q, a, b
mul<|.rn>.ftz.<f16|f16x2> q, a, b
mul<|.rn|.rz|.rm|.rp>.ftz.f32 q, a, b
mad<.lo|.hi>.<u16|u32|u64|s16|s32|s64> q, a, b, c
mad<.lo|.hi>.cc.<u32|u64|s32|s64> q, a, b, c
mad.hi.sat.s32 q, a, b, c
mad.wide.<u16|u32|s16|s32> q, a, b, w
mad<.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32 q, a, b, c
mad<.rn|.rz|.rm|.rp>.f64 q, a, b, c
madc<.lo|.hi><|.cc>.<u32|u64|s32|s64> q, a, b, c
fma.rn.<f16|f16x2|bf16|bf16x2|f32|f64> q, a, b, c
fma.rn<.relu|.oob|.oob.relu>.<f16|f16x2|bf16|bf16x2> q, a, b, c
fma.rn<|.ftz>.sat.<f16|f16x2|f32> q, a, b, c
fma.rn.sat.oob.<f16|f16x2> q, a, b, c
fma.rn.ftz.<f16|f16x2|f32> q, a, b, c
fma.rn.ftz.relu.<f16|f16x2> q, a, b, c
fma<.rz|.rm|.rp>.<f32|f64> q, a, b, c
fma<.rz|.rm|.rp><|.ftz>.sat.f32 q, a, b, c
fma<.rz|.rm|.rp>.ftz.f32 q, a, b, c
mul24<.lo|.hi>.<u32|s32> q, a, b
mad24<.lo|.hi>.<u32|s32> q, a, b, c
mad24.hi.sat.s32 q, a, b, c
sad.<u16|u32|u64|s16|s32|s64> q, a, b, c
<div|rem>.<u16|u32|u64|s16|s32|s64> q, a, b
div<.rn|.rz|.rm|.rp><|.ftz>.f32 q, a, b
div<.rn|.rz|.rm|.rp>.f64 q, a, b
<abs|neg>.<s16|s32|s64> q, a
<abs|neg>.<f16|f16x2|bf16|bf16x2|f32|f64> q, a
<abs|neg>.ftz.<f16|f16x2|f32> q, a
<min|max>.<u16|u32|u64|s16|s32|s64|u16x2|s16x2> q, a, b
<min|max>.relu.<s32|s16x2> q, a, b
<min|max>.<f16|f16x2|bf16|bf16x2|f32|f64> q, a, b
<min|max><|.NaN>.xorsign.abs.<f16|f16x2|bf16|bf16x2|f32> q, a, b
<min|max>.NaN.<f16|f16x2|bf16|bf16x2|f32> q, a, b
<min|max>.ftz<|.NaN><|.xorsign.abs>.<f16|f16x2|f32> q, a, b
<popc|clz|brev|cnot|not>.<b32|b64> q, a
<cnot|not>.b16 q, a
not.pred q, a
<and|or|xor>.<b16|b32|b64|pred> q, a, b
lop3.b32 q, a, b, c, <0x6a|0x1b|0xe8>
lop3<.or|.and>.b32 q|p, a, b, c, 0x6a, P
<bfind|bfind.shiftamt>.<u32|u64|s32|s64> q, a
bfe.<u32|s32|u64|s64> q, a, n, m
bfi.<b32|b64> q, a, b, m, n
szext<.clamp|.wrap>.<u32|s32> q, a, m
bmsk<.clamp|.wrap>.b32 q, a, m
dp4a<.u32|.s32><.u32|.s32> q, a, b, c
dp2a<.lo|.hi><.u32|.s32><.u32|.s32> q, a, b, c
testp.<finite|infinite|number|notanumber|normal|subnormal>.<f32|f64> p, a
copysign.<f32|f64> q, a, b
<rcp|sqrt><.rn|.rz|.rm|.rp><|.ftz>.f32 q, a
rcp<.rn|.rz|.rm|.rp>.ftz.f64 q, a
<rcp|sqrt><.rn|.rz|.rm|.rp>.f64 q, a
shl.<b16|b32|b64> q, a, m
shr.<u16|u32|u64|s16|s32|s64|b16|b32|b64> q, a, m
shf<.l|.r><.clamp|.wrap>.b32 q, a, b, m
prmt.b32<|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16> q, a, b, c
selp.<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64> q, a, b, P
slct.<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64>.s32 q, a, b, m
slct<|.ftz>.<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64>.f32 q, a, b, m
setp.<eq|ne>.<b16|b32|b64> p, a, b
setp.<eq|ne><.and|.or|.xor>.<b16|b32|b64> p, a, b, P
setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.<u16|u32|u64> p, a, b
setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs><.and|.or|.xor>.<u16|u32|u64> p, a, b, P
setp.<eq|ne|lt|le|gt|ge>.<s16|s32|s64> p, a, b
setp.<eq|ne|lt|le|gt|ge><.and|.or|.xor>.<s16|s32|s64> p, a, b, P
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.<f16|bf16|f32|f64> p, a, b
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.<f16x2|bf16x2> p|v, a, b
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><.and|.or|.xor>.<f16|bf16> p, a, b, P
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><.and|.or|.xor>.<f32|f64> p, a, b, P
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><.and|.or|.xor>.<f16x2|bf16x2> p|v, a, b, P
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.ftz.<f16|f32> p, a, b
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.ftz.f16x2 p|v, a, b
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><.and|.or|.xor>.ftz.<f16|f32> p, a, b, P
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><.and|.or|.xor>.ftz.f16x2 p|v, a, b, P
set.<eq|ne>.<u32|s32|f32|f16|bf16>.<b16|b32|b64> q, a, b
set.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.<u32|s32|f32|f16|bf16>.<u16|u32|u64> q, a, b
set.<eq|ne|lt|le|gt|ge>.<u32|s32|f32|f16|bf16>.<s16|s32|s64> q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan><|.ftz>.<u32|s32|f16x2>.f16x2 q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.<u32|s32|bf16x2>.bf16x2 q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.<u32|s32|f32|f16|bf16>.<f32|f64> q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.ftz.<u32|s32|u16|s16|f16>.f16 q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.ftz.<u32|s32|f32|f16>.f32 q, a, b
set.<lt|geu><.and|.or|.xor><|.ftz>.<u32|s32|f16x2>.f16x2 q, a, b, P
set.<lt|geu><.and|.or|.xor>.<u32|s32|bf16x2>.bf16x2 q, a, b, P
set.<lt|geu><.and|.or|.xor>.<u32|s32|f32|f16|bf16>.<f32|f64> q, a, b, P
set.lt<.and|.or|.xor>.<u32|s32|f32|f16|bf16>.<s64|u16|s16|s32> q, a, b, P
set.<lt|geu><.and|.or|.xor>.ftz.<u32|s32|u16|s16|f16>.f16 q, a, b, P
set.<lt|geu><.and|.or|.xor>.ftz.<u32|s32|f32|f16>.f32 q, a, b, P
cvt.<s8|u8|s16|u16|s32|u32|s64|u64>.<s8|u8|s16|u16|s32|u32|s64|u64> q, a
cvt.sat.s8.u8 q, a
cvt.sat.<s8|u8|u16|u32|u64>.s16 q, a
cvt.sat.<s8|u8|s16>.u16 q, a
cvt.sat.<s8|u8|s16|u16|u32|u64>.s32 q, a
cvt.sat.<s8|u8|s16|u16|s32>.u32 q, a
cvt.sat.<s8|u8|s16|u16|s32|u32|u64>.s64 q, a
cvt.sat.<s8|u8|s16|u16|s32|u32|s64>.u64 q, a
cvt.sat.<u8|u16|u32|u64>.s8 q, a
cvt<.rni|.rzi|.rmi|.rpi><|.sat>.<s8|u8|s16|u16|s32|u32|s64|u64>.<f16|f32|f64> q, a
cvt<.rni|.rzi|.rmi|.rpi>.<s16|u16|s32|u32|s64|u64>.bf16 q, a
cvt<.rni|.rzi|.rmi|.rpi>.ftz<|.sat>.<s8|u8|s16|u16|s32|u32|s64|u64>.f32 q, a
cvt<.rn|.rz|.rm|.rp><|.sat>.<f16|f32|f64>.<s8|u8|s16|u16|s32|u32|s64|u64> q, a
cvt<.rn|.rz|.rm|.rp>.bf16.<s16|u16|s32|u32|s64|u64> q, a
cvt<.rn|.rz|.rm|.rp>.ftz<|.sat>.f32.<s8|u8|s16|u16|s32|u32|s64|u64> q, a
cvt<|.rni|.rzi|.rmi|.rpi><|.sat>.f16.f16 q, a
cvt<|.rn|.rz|.rm|.rp>.<f16|f64>.bf16 q, a
cvt<|.rn|.rz|.rm|.rp>.bf16.f16 q, a
cvt<|.rni|.rzi|.rmi|.rpi>.bf16.bf16 q, a
cvt<|.ftz><|.sat>.f32.f16 q, a
cvt<|.rn|.rz|.rm|.rp><|.ftz>.f32.bf16 q, a
cvt<|.rni|.rzi|.rmi|.rpi><|.ftz><|.sat>.f32.f32 q, a
cvt<|.sat>.f64.f16 q, a
cvt<|.ftz><|.sat>.f64.f32 q, a
cvt<|.rni|.rzi|.rmi|.rpi><|.sat>.f64.f64 q, a
cvt<.rn|.rz|.rm|.rp><|.sat>.f16.f64 q, a
cvt<.rn|.rz|.rm|.rp><|.ftz>.bf16.f32 q, a
cvt<.rn|.rz|.rm|.rp>.bf16.f64 q, a
cvt<.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32.f64 q, a
cvt<.rn|.rz><|.relu>.satfinite.<f16|bf16>.f32 q, a
cvt<.rn|.rz>.relu.<f16|bf16>.f32 q, a
cvt<.rn|.rz><|.relu>.tf32.f32 q, a
cvt<.rn|.rz><|.relu>.satfinite.<f16x2|bf16x2>.f32 q, e
cvt.rna<|.satfinite>.tf32.f32 q, a
cvt<.rn|.rz><|.relu>.<f16x2|bf16x2>.f32 q, e
cvt.rn.satfinite<|.relu>.<f16x2|bf16x2|e4m3x2|e5m2x2>.f32 q, e
cvt.rz.satfinite<|.relu>.<f16x2|bf16x2>.f32 q, e
cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f16x2 q, a
cvt.rn<|.relu>.f16x2.<e4m3x2|e5m2x2> q, a
cvt.pack.sat.<u16|s16>.s32 q, a, b
cvt.pack.sat.<u8|s8|u4|s4|u2|s2>.s32.b32 q, a, b, c
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.<u32|s32|u16|s16|f16|bf16>.f16 q, a, b
set.<eq|lt|ge|equ|neu|leu|gtu|num|nan>.<u32|s32|u16|s16|bf16>.bf16 q, a, b
set.<lt|geu><.and|.or|.xor>.<u32|s32|u16|s16|f16|bf16>.f16 q, a, b, P
set.<lt|geu><.and|.or|.xor>.<u32|s32|u16|s16|bf16>.bf16 q, a, b, P
cvt<.rn|.rz><|.ftz><|.sat>.f16.f32 q, a
cvt<.rm|.rp><|.sat>.f16.f32 q, a
"""

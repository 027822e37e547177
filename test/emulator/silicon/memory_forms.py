"""Forms of atomics, cp.async, barriers that reduce, calls and indirect branches, in one CTA.

Sources: PTX ISA §9.7.13.5 and .6 (atom, red), §9.7.9.25.3 (cp.async), §9.7.13.1 (bar.red),
§9.7.12.4 and §9.7.12.5 (brx.idx, call).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scalar_instructions import lines_of
from silicon_case import Case, generator, kernel, moves

THREADS, WORDS, PLACE = 64, 16, 32

ATOMICS = """
atom.SPACE.cas.b64 %w50, [PLACE], %w0, %w2
atom.global.exch.b128 %x1, [PLACE], %x0
atom.global.cas.b128 %x1, [PLACE], %x2, %x0
red.SPACE.<add|min|max>.u64 [PLACE], %w4
red.SPACE.<min|max>.s64 [PLACE], %w4
red.SPACE.<and|or|xor>.b64 [PLACE], %w4
red.SPACE.<add|min|max>.s32 [PLACE], %r8
red.SPACE.add.f64 [PLACE], %w6
red.SPACE.add.noftz.<f16|bf16> [PLACE], %h0
atom.global.v2.f32.add {%r100, %r101}, [PLACE], {%r12, %r13}
atom.global.v4.f32.add {%r100, %r101, %r102, %r103}, [PLACE], {%r12, %r13, %r14, %r15}
red.global.v2.f32.add [PLACE], {%r12, %r13}
red.global.v4.f32.add [PLACE], {%r12, %r13, %r14, %r15}
atom.global.v2.<f16|bf16>.<add|min|max>.noftz {%h8, %h9}, [PLACE], {%h0, %h1}
atom.global.v4.<f16|bf16>.<add|min|max>.noftz {%h8, %h9, %h10, %h11}, [PLACE], {%h0, %h1, %h2, %h3}
red.global.v2.<f16|bf16>.<add|min|max>.noftz [PLACE], {%h0, %h1}
red.global.v8.<f16|bf16>.<add|min|max>.noftz [PLACE], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}
atom.global.v2.<f16x2|bf16x2>.<add|min|max>.noftz {%r100, %r101}, [PLACE], {%r12, %r13}
red.global.v4.<f16x2|bf16x2>.<add|min|max>.noftz [PLACE], {%r12, %r13, %r14, %r15}
"""
"""Operands are finite. SPACE is global or shared, PLACE 32 bytes of each thread. %x0 and %x2 have
128 bits; %w0 and %x2 hold now and then what lies there."""

_OPERANDS = """
.reg .b16 %h<12>; .reg .b128 %x<4>;
mov.b64 %w0, {%r0, %r1}; mov.b64 %w2, {%r4, %r5}; mov.b64 %w4, {%r8, %r9};
mov.b64 %w6, {%r10, %r11}; mov.b64 %w8, {%r6, %r7}; mov.b128 %x0, {%w4, %w6};
mov.b128 %x2, {%w0, %w8}; mov.b128 %x1, {%w8, %w8};
mov.b32 {%h0, %h1}, %r12; mov.b32 {%h2, %h3}, %r13; mov.b32 {%h4, %h5}, %r14;
mov.b32 {%h6, %h7}, %r15; mov.b64 %w50, 0;
mov.u16 %h8, 0; mov.u16 %h9, 0; mov.u16 %h10, 0; mov.u16 %h11, 0;
"""
_RESULTS = {
    "%w50": "mov.b64 {%r100, %r101}, %w50;\n",
    "%x1": "mov.b128 {%w50, %w51}, %x1; mov.b64 {%r100, %r101}, %w50;"
    " mov.b64 {%r102, %r103}, %w51;\n",
    "{%h8": "mov.b32 %r100, {%h8, %h9}; mov.b32 %r101, {%h10, %h11};\n",
}


def memory_forms() -> Iterator[Case]:
    """A case an instruction or program."""
    for line in lines_of(ATOMICS):
        for space in ("global", "shared") if "SPACE" in line else ("global",):
            yield _atomic(line.replace("SPACE", space))
    yield from _copies()
    yield from _reductions()
    yield from _branches()


def _atomic(line: str) -> Case:
    rng = generator(line)
    words = rng.integers(0, 1 << 32, (THREADS, WORDS), np.uint32)
    if "f16" in line:
        words[:, 12:] &= np.uint32(0xBFFFBFFF)
        words[:, :8] &= np.uint32(0xBFFFBFFF)
    if "f32" in line or "f64" in line:
        words &= np.uint32(0xBFFFFFFF)
        words[rng.random((THREADS, WORDS)) < 0.2] &= np.uint32(0x800FFFFF)
    held = words[:, [0, 1, 6, 7]].copy()
    held[::3, 0] ^= np.uint32(1)
    initial = np.concatenate([held, words[:, 2:6]], axis=1)
    words = np.concatenate([words, initial], axis=1)
    body = moves("ld", 0, WORDS + 8, 0) + _OPERANDS
    body += "".join(f"mov.b32 %r{number}, 0; " for number in range(100, 104)) + "\n"
    body += "mad.wide.u32 %p3, %t, 64, %p2; shl.b32 %at, %t, 5; add.u32 %at, %at, %base;\n"
    space, place = ("shared", "%at") if ".shared." in line else ("global", "%p3")
    body += "".join(
        f"st.{space}.v4.b32 [{place}+{16 * half}], {_four(16 + 4 * half)};\n" for half in (0, 1)
    )
    body += line.replace("PLACE", place) + ";\n"
    body += next((text for name, text in _RESULTS.items() if f" {name}" in line), "")
    body += "".join(
        f"ld.{space}.v4.b32 {_four(104 + 4 * half)}, [{place}+{16 * half}];\n" for half in (0, 1)
    )
    body += "mov.b32 %r112, 0; mov.b32 %r113, 0; mov.b32 %r114, 0; mov.b32 %r115, 0;\n"
    return Case(line, kernel(body, WORDS + 8, 16), np.zeros(4, np.uint8), words, 16)


def _four(first: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(4)) + "}"


def _copies() -> Iterator[Case]:
    for level, size, tail in itertools.product(
        ("ca", "cg"), (4, 8, 16), ("", ", %r4", ", %q", ", 0", ", 3")
    ):
        if level == "ca" or size == 16:
            title = f"cp.async.{level}.shared.global [%at], [%p3], {size}{tail}"
            rng = generator(title)
            words = rng.integers(0, 1 << 32, (THREADS, 6), np.uint32)
            words[:, 4] = rng.integers(0, size + 1, THREADS)
            words[:, 5] &= 1
            body = moves("ld", 4, 2, 4) + "setp.ne.u32 %q, %r5, 0; mov.u32 %r0, 0xABABABAB;\n"
            body += "shl.b32 %at, %t, 4; add.u32 %at, %at, %base;\n"
            body += "mad.wide.u32 %p3, %t, 16, %p0; st.shared.v4.b32 [%at], {%r0, %r0, %r0, %r0};\n"
            body += title + ";\ncp.async.wait_all;\n"
            body += "ld.shared.v4.b32 {%r100, %r101, %r102, %r103}, [%at];\n"
            image = rng.integers(0, 256, 16 * THREADS).astype(np.uint8)
            yield Case(title, kernel(body, 6, 4), image, words, 4)


def _reductions() -> Iterator[Case]:
    names, results = (
        ("bar", "barrier", "barrier.cta"),
        ("popc.u32 %r100", "and.pred %q", "or.pred %q"),
    )
    for name, what, negated in itertools.product(names, results, ("", "!")):
        for density in (0.5, 0.01, 0.99):
            aligned = ".aligned" if name != "bar" and density == 0.5 else ""
            call = f"{name}.red{aligned}.{what}, 3, {negated}%on"
            rng = generator(title := f"{call}, of {density}")
            words = (rng.random((THREADS, 2)) < density).astype(np.uint32)
            body = moves("ld", 0, 1, 0) + "setp.ne.u32 %on, %r0, 0; mov.b32 %r100, 7;\n"
            body += call + ";\n"
            body += "selp.u32 %r100, 1, 0, %q;\n" if "%q" in call else ""
            yield Case(title, kernel(body, 2, 1), np.zeros(4, np.uint8), words, 1)


_CALLED = """.func (.reg .b32 %result) twice(.reg .b32 %given) {
add.u32 %result, %given, %given; ret; }
"""


def _branches() -> Iterator[Case]:
    rng = generator("branches")
    words = rng.integers(0, 4, (THREADS, 2), np.uint32)
    body = moves("ld", 0, 2, 0) + "mov.b32 %r100, 1;\n"
    body += "table: .branchtargets L0, L1, L2, L3;\nbrx.idx %r0, table;\n"
    body += "".join(f"L{i}: add.u32 %r100, %r100, {10**i}; {'' if i % 2 else 'bra END;'}\n"
                    for i in range(4))  # fmt: skip
    yield Case("brx.idx", kernel(body + "END:\n", 2, 1), np.zeros(4, np.uint8), words, 1)
    body = moves("ld", 0, 2, 0) + "setp.eq.u32 %q, %r1, 0; mov.b32 %r100, %r0;\n"
    body += "@%q call (%r100), twice, (%r0);\n"
    text = kernel(body, 2, 1).replace(".visible", _CALLED + ".visible", 1)
    yield Case("call of some lanes", text, np.zeros(4, np.uint8), words, 1)

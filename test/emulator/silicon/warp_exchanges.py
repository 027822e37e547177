"""Instructions by which the lanes of a warp exchange values, and reductions that meet in memory.

Sources: PTX ISA §9.7.9.6 (shfl), §9.7.13.5 to .7 (atom, red), §9.7.13.9 to .14 (vote, match,
redux), §9.7.14.5.15 to .17 (ldmatrix, stmatrix, movmatrix).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scalar_instructions import lines_of
from silicon_case import Case, generator, kernel, moves

LANES, WORDS = 32, 6

EXCHANGES = """
shfl.sync.<up|down|bfly|idx>.b32 %r100|%q, %r0, %r1, %r2, -1; selp.u32 %r101, 1, 0, %q
shfl.sync.<up|down|bfly|idx>.b32 %r100|%q, %r0, %r8, %r2, -1; selp.u32 %r101, 1, 0, %q
shfl.sync.<up|down|bfly|idx>.b32 %r100|%q, %r0, %r8, %r9, -1; selp.u32 %r101, 1, 0, %q
shfl.sync.<up|down|bfly|idx>.b32 %r100|%q, %r0, 3, 0x1c1f, -1; selp.u32 %r101, 1, 0, %q
vote.sync.<all|any|uni>.pred %q, %on, -1; selp.u32 %r100, 1, 0, %q
vote.sync.<all|any|uni>.pred %q, !%on, -1; selp.u32 %r100, 1, 0, %q
vote.sync.ballot.b32 %r100, %on, -1
match.any.sync.b32 %r100, %r8, -1
match.any.sync.b64 %r100, %w60, -1
match.all.sync.b32 %r100|%q, %r8, -1; selp.u32 %r101, 1, 0, %q
match.all.sync.b32 %r100|%q, 77, -1; selp.u32 %r101, 1, 0, %q
redux.sync.<add|min|max>.<s32|u32> %r100, %r0, -1
redux.sync.<and|or|xor>.b32 %r100, %r0, -1
movmatrix.sync.aligned.m8n8.trans.b16 %r100, %r0
elect.sync %r100|%q, -1; selp.u32 %r101, 1, 0, %q
activemask.b32 %r100
mov.u32 %r100, %lanemask_<eq|le|lt|ge|gt>
"""
"""%r8 holds 0 to 7, %r9 a clamp and a mask of shfl, %w60 one of a few values, %on is random."""

ATOMICS = """
atom.SPACE.<add|min|max|inc|dec>.u32 %r100, [PLACE], %r0
atom.SPACE.<add|min|max>.s32 %r100, [PLACE], %r0
atom.SPACE.<and|or|xor|exch>.b32 %r100, [PLACE], %r0
atom.SPACE.cas.b32 %r100, [PLACE], %r2, %r0
atom.SPACE.cas.b16 %h1, [PLACE], %h2, %h0; cvt.u32.u16 %r100, %h1
atom.SPACE.<add|min|max>.u64 %w50, [PLACE], %w0; mov.b64 {%r100, %r101}, %w50
atom.SPACE.<min|max>.s64 %w50, [PLACE], %w0; mov.b64 {%r100, %r101}, %w50
atom.SPACE.<and|or|xor|exch>.b64 %w50, [PLACE], %w0; mov.b64 {%r100, %r101}, %w50
atom.SPACE.add.noftz.<f16|bf16> %h1, [PLACE], %h0; cvt.u32.u16 %r100, %h1
atom.SPACE.add.noftz.<f16x2|bf16x2> %r100, [PLACE], %r0
red.SPACE.<add|min|max|inc|dec>.u32 [PLACE], %r0
red.SPACE.<and|or|xor>.b32 [PLACE], %r0
red.SPACE.add.noftz.<f16x2|bf16x2> [PLACE], %r0
atom.SPACE.add.f32 %r100, [PLACE], %r0
red.SPACE.add.f32 [PLACE], %r0
atom.SPACE.add.f64 %w50, [PLACE], %w0; mov.b64 {%r100, %r101}, %w50
"""
"""SPACE is global or shared, PLACE 8 bytes of each thread, which hold two random words."""


def warp_exchanges() -> Iterator[Case]:
    """A case an instruction, and each with lanes 0 to 12 at another place than the rest."""
    for line in lines_of(EXCHANGES):
        yield _exchange(line, line)
        if "-1" in line and "shfl" not in line:
            yield _exchange(f"{line} (apart)", _apart(line))
    for line in lines_of(ATOMICS):
        for space, place in (("global", "%p3"), ("shared", "%at")):
            yield _atomic(line.replace("SPACE", space).replace("PLACE", place))


def _apart(line: str) -> str:
    low, high = line.replace("-1", "0x1fff"), line.replace("-1", "0xffffe000")
    return (f"setp.lt.u32 %in, %t, 13;\n@%in bra PART;\n{high};\nbra.uni END;\nPART: {low};\nEND:\n"
            "bar.warp.sync -1")  # fmt: skip


def _exchange(title: str, text: str) -> Case:
    rng = generator(title)
    words = rng.integers(0, 1 << 32, (LANES, WORDS), np.uint32)
    body = ".reg .pred %in;\n" + moves("ld", 0, WORDS, 0)
    body += "and.b32 %r8, %r3, 7; and.b32 %r9, %r4, 0x1f1f; and.b32 %r10, %r5, 0x40000001;\n"
    body += "setp.gt.u32 %on, %r10, 0; mov.b64 %w60, {%r10, %r10};\n"
    body += f"mov.b32 %r100, 0; mov.b32 %r101, 0;\n{text};\n"
    if "shfl" in title and "%r9" in title:
        words[:] = words[:1] | words & np.array([-1, -1, -1, -1, 0, -1], np.int32).view(np.uint32)
    return Case(title, kernel(body, WORDS, 2), np.zeros(4, np.uint8), words, 2)


def _atomic(line: str) -> Case:
    rng = generator(line)
    words = rng.integers(0, 1 << 32, (LANES, WORDS), np.uint32)
    few = np.array([0x3C003C01, 0x40490FDB, 0x00000003, 0xFFFFFFFF, 0x3F804040], np.uint32)
    words[:, :6] = np.where(rng.random((LANES, 6)) < 0.4, rng.choice(few, (LANES, 6)), words)
    if "f16" in line:  # finite ones
        words &= np.uint32(0xBFFFBFFF)
    if ".f32" in line or ".f64" in line:  # finite, and some subnormal
        words &= np.uint32(0xBFFFFFFF)
        words[rng.random((LANES, WORDS)) < 0.3] &= np.uint32(0x800FFFFF)
    words[::3, 2:4] = words[::3, 4:6]  # so that cas.b32 swaps now and then
    body = ".reg .b16 %h<4>;\n" + moves("ld", 0, WORDS, 0)
    body += "mov.b32 {%h0, %h3}, %r0; mov.b32 {%h2, %h3}, %r2; mov.b64 %w0, {%r0, %r1};\n"
    body += "mov.b32 %r100, 0; mov.b32 %r101, 0; shl.b32 %at, %t, 3; add.u32 %at, %at, %base;\n"
    body += "mad.wide.u32 %p3, %t, 16, %p2; st.global.v2.b32 [%p3], {%r4, %r5};\n"
    body += "st.shared.v2.b32 [%at], {%r4, %r5};\n" + line + ";\n"
    space, place = ("global", "%p3") if "global" in line else ("shared", "%at")
    body += f"ld.{space}.v2.b32 {{%r102, %r103}}, [{place}];\n"
    return Case(line, kernel(body, WORDS, 4), np.zeros(4, np.uint8), words, 4)


def matrix_moves() -> Iterator[Case]:
    """ldmatrix and stmatrix at rows in a random order."""
    for count in (1, 2, 4):
        for trans in ("", ".trans"):
            yield _matrix_move("ldmatrix", count, trans)
            yield _matrix_move("stmatrix", count, trans)


def _matrix_move(name: str, count: int, trans: str) -> Case:
    opcode = f"{name}.sync.aligned.m8n8.x{count}{trans}.shared.b16"
    rng = generator(opcode)
    words = rng.integers(0, 1 << 32, (LANES, WORDS + 1), np.uint32)
    words[:, 6] = 16 * rng.permutation(LANES)
    body = moves("ld", 0, WORDS + 1, 0)
    body += "shl.b32 %at, %t, 4; add.u32 %at, %at, %base;\n"
    body += "st.shared.v4.b32 [%at], {%r0, %r1, %r2, %r3}; bar.sync 0;\n"
    body += "add.u32 %to, %r6, %base; " + "".join(f"mov.b32 %r10{i}, 0; " for i in range(4)) + "\n"
    if name == "ldmatrix":
        registers = ", ".join(f"%r10{i}" for i in range(count))
        body += f"{opcode} {{{registers}}}, [%to];\n"
    else:
        registers = ", ".join(f"%r{(0, 1, 4, 5)[i]}" for i in range(count))
        body += f"{opcode} [%to], {{{registers}}};\nbar.sync 0;\n"
        body += "ld.shared.v4.b32 {%r100, %r101, %r102, %r103}, [%at];\n"
    return Case(opcode, kernel(body, WORDS + 1, 4), np.zeros(4, np.uint8), words, 4)

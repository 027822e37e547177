"""Integer code of one lane gives what the same instructions give in a whole warp."""

import random

import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.ptx.scalar import expression

HEADER = ".version 8.7\n.target sm_100a\n.address_size 64\n"
ROUNDS = 64
"""More than make a run compiled; half of them run afterwards."""
WIDTHS = {16: "h", 32: "n", 64: "w"}


def forms() -> list[tuple[str, int, str]]:
    """(opcode, bits of the result, operands) of each kind of instruction with an expression."""
    found = []
    for bits, r in WIDTHS.items():
        a, b, c = (f"%{r}{i}" for i in range(3))
        types = [f"{kind}{bits}" for kind in "us"]
        for t in types:
            found += [(f"{op}.{t}", bits, f"{a}, {b}") for op in ("add", "sub", "mul.lo")]
            found += [(f"mad.lo.{t}", bits, f"{a}, {b}, {c}"), (f"shr.{t}", bits, f"{a}, %n3")]
            found += [(f"setp.{op}.{t}", 1, f"{a}, {b}")
                      for op in ("eq", "ne", "lt", "le", "gt", "ge")]  # fmt: skip
            found += [(f"selp.{t}", bits, f"{a}, {b}, %p0"), (f"mov.{t}", bits, a)]
            found += [(f"cvt.{kind}{to}.{t}", to, a) for to in WIDTHS for kind in "us"]
            if bits < 64:
                found.append((f"mul.wide.{t}", 2 * bits, f"{a}, {b}"))
        found += [(f"setp.{op}.u{bits}", 1, f"{a}, {b}") for op in ("lo", "ls", "hi", "hs")]
        found += [(f"{op}.b{bits}", bits, f"{a}, {b}") for op in ("and", "or", "xor")]
        found += [(f"not.b{bits}", bits, a), (f"shl.b{bits}", bits, f"{a}, %n3")]
        found += [(f"shl.b{bits}", bits, f"{a}, {bits - 3}"), (f"add.s{bits}", bits, f"{a}, -7")]
    found += [(f"{op}.pred", 1, "%p0, %p1") for op in ("and", "or", "xor")]
    found += [("not.pred", 1, "%p0"), ("mov.pred", 1, "%p1"), ("cvt.s32.s8", 32, "%n0")]
    found += [("mov.b64", 64, "{%n0, %n1}"), ("mov.b64", 64, "{%h0, %h1, %h2, %h0}")]
    found += [("mov.b32", 32, "{%h1, %h2}")]
    found += [("cvta.shared.u64", 64, "%w0"), ("cvta.to.shared.u64", 64, "%w0")]
    return found


def kernel(chosen: list[tuple[str, int, str]], alone: bool) -> str:
    """Each form on the numbers of a row: a lane a row, or lane 0 row after row."""
    letter = {1: "q", 16: "x", 32: "y", 64: "z"}
    body = [f"{op} %{letter[bits]}{i}, {rest};" for i, (op, bits, rest) in enumerate(chosen)]
    stores = []
    for i, (_, bits, _) in enumerate(chosen):
        if bits == 1:
            stores.append(f"selp.u64 %t, 1, 0, %q{i};")
        else:
            stores.append(
                f"cvt.u64.u{bits} %t, %{letter[bits]}{i};" if bits < 64 else f"mov.u64 %t, %z{i};"
            )
        stores.append(f"st.global.u64 [%to+{8 * i}], %t;")
    loads = "\n".join(f"ld.global.u64 %w{i}, [%at+{8 * i}];" for i in range(3))
    narrow = "\n".join(f"cvt.u32.u64 %n{i}, %w{i}; cvt.u16.u64 %h{i}, %w{i};" for i in range(3))
    guard = "setp.ne.u32 %p2, %lane, 0; @%p2 bra DONE;" if alone else ""
    again = f"add.u32 %row, %row, 1; setp.lt.u32 %p2, %row, {ROUNDS}; @%p2 bra AGAIN;"
    return f"""{HEADER}.visible .entry k(.param .u64 rows, .param .u64 out) {{
        .reg .b16 %h<3>, %x<{len(chosen)}>; .reg .b32 %n<4>, %y<{len(chosen)}>, %lane, %row;
        .reg .b64 %w<3>, %z<{len(chosen)}>, %at, %to, %t;
        .reg .pred %p<3>, %q<{len(chosen)}>;
        mov.u32 %lane, %tid.x; mov.u32 %row, {"0" if alone else "%tid.x"}; {guard}
        AGAIN: ld.param.u64 %at, [rows]; mad.wide.u32 %at, %row, 24, %at;
        ld.param.u64 %to, [out]; mad.wide.u32 %to, %row, {8 * len(chosen)}, %to;
        {loads} {narrow} and.b32 %n3, %n1, 127;
        setp.lt.u32 %p0, %n0, %n1; setp.lt.u32 %p1, %n1, %n2;
        ld.global.u64 %t, [%at];
        {chr(10).join(body)}
        {chr(10).join(stores)} {again if alone else ""}
        DONE: ret; }}"""


@pytest.mark.parametrize("part", range(4))
def test_one_lane_computes_what_a_warp_does(part):
    chosen = forms()[part::4]
    known = [expression(op, rest.count(",") + 1, 1, bits) for op, bits, rest in chosen]
    assert None not in known
    rng = random.Random(part)
    edges = [0, 1, (1 << 64) - 1, 1 << 63, 0x80008000_80008000, 0x7FFF7FFF_7FFFFFFF]
    numbers = [rng.choice([rng.getrandbits(64), rng.choice(edges)]) for _ in range(3 * ROUNDS)]
    rows = np.array(numbers, np.uint64).reshape(ROUNDS, 3)
    outs = [np.zeros((ROUNDS, len(chosen)), np.uint64) for _ in range(2)]
    launch(kernel(chosen, alone=True), "k", grid=1, block=32, params=[rows, outs[0]])
    launch(kernel(chosen, alone=False), "k", grid=1, block=ROUNDS, params=[rows, outs[1]])
    for column, (op, _, rest) in enumerate(chosen):
        assert (outs[0][:, column] == outs[1][:, column]).all(), (op, rest)

"""setp, set, selp and slct (PTX ISA §9.7.6, §9.7.7)."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

ORDERED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
SELECT = " selp.u32 %d, 1, 0, %p;"
COMPARED = [
    (name, sign + bits)
    for sign, names in (("s", ORDERED), ("u", ORDERED | UNSIGNED))
    for name in names
    for bits in ("16", "32", "64")
]


@pytest.mark.parametrize(("name", "type_"), COMPARED)
def test_integer_comparisons(execute, integers, as_signed, name, type_):
    """PTX ISA §9.7.6.2 setp"""
    bits = int(type_[1:])
    a, b = integers(bits, 1), integers(bits, 2)
    b[::3] = a[::3]
    got = execute(f"setp.{name}.{type_} %p, %a, %b;" + SELECT, a, b, out=np.uint32)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        if type_[0] == "s":
            x, y = as_signed(x, bits), as_signed(y, bits)
        assert d == (ORDERED | UNSIGNED)[name](x, y)


def float_comparison(name: str, x: float, y: float) -> bool:
    unordered = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name.endswith("u"):
        return unordered or ORDERED[name[:-1]](x, y)
    return not unordered and ORDERED[name](x, y)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", [*ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"])
def test_float_comparisons_and_nan(execute, floats, formats, name, type_):
    """PTX ISA §9.7.6.2 setp, §9.7.7.2 half precision setp"""
    form = formats[type_]
    a, b = floats(type_, 1), floats(type_, 2)
    b[::3] = a[::3]
    got = execute(f"setp.{name}.{type_} %p, %a, %b;" + SELECT, a, b, out=np.uint32)
    for x, y, d in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert d == float_comparison(name, form.decode(x), form.decode(y)), (x, y)


@pytest.mark.parametrize(
    "combine, function", [("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)]
)
@pytest.mark.parametrize("negated", ["", "!"])
def test_two_destinations_and_a_combined_predicate(execute, integers, combine, function, negated):
    """PTX ISA §9.7.6.2: p = (a cmp b) op c, q = !(a cmp b) op c"""
    a, b, c = (integers(32, seed) for seed in (1, 2, 3))
    body = f"""setp.gt.u32 %p, %c, 1000; setp.lt.{combine}.u32 %p|%q, %a, %b, {negated}%p;
               selp.u32 %d, 1, 0, %p; selp.u32 %t0, 2, 0, %q; or.b32 %d, %d, %t0;"""
    got = execute(body, a, b, c, out=np.uint32)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        third = (z > 1000) != bool(negated)
        assert d == function(x < y, third) | 2 * function(x >= y, third)


def test_packed_halves_compare_into_two_predicates(execute, floats, formats):
    """PTX ISA §9.7.7.2 setp.f16x2"""
    form = formats["f16"]
    parts = [floats("f16", seed) for seed in range(4)]
    a = parts[1].astype(np.uint32) << 16 | parts[0]
    b = parts[3].astype(np.uint32) << 16 | parts[2]
    got = execute(
        """setp.le.f16x2 %p|%q, %a, %b; selp.u32 %d, 1, 0, %p;
                     selp.u32 %t0, 2, 0, %q; or.b32 %d, %d, %t0;""",
        a,
        b,
        out=np.uint32,
    )
    alone = execute("setp.le.f16x2 %p, %a, %b; selp.u32 %d, 1, 0, %p;", a, b, out=np.uint32)
    assert (alone == (got & 1)).all(), "ptxas takes one predicate, too: of the lower half"
    for low, high, low_b, high_b, d in zip(*(v.tolist() for v in (*parts, got)), strict=True):
        assert d == (
            float_comparison("le", form.decode(low), form.decode(low_b))
            | 2 * float_comparison("le", form.decode(high), form.decode(high_b))
        )


@pytest.mark.parametrize(
    "type_, true", [("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000)]
)
def test_set_gives_all_ones_or_one(execute, integers, type_, true):
    """PTX ISA §9.7.6.1 set"""
    a, b = integers(32, 1), integers(32, 2)
    got = execute(f"set.ge.{type_}.u32 %d, %a, %b;", a, b, out=np.uint32)
    assert got.tolist() == [
        true if x >= y else 0 for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


@pytest.mark.parametrize("source, one", [("f16", 0x3C00), ("bf16", 0x3F80)])
@pytest.mark.parametrize("result", ["u32", "packed"])
def test_set_of_packed_halves_fills_each_half(execute, floats, formats, source, one, result):
    """PTX ISA §9.7.7.1 set.cmp.dtype.f16x2"""
    form, parts = formats[source], [floats(source, seed) for seed in range(4)]
    a = parts[1].astype(np.uint32) << 16 | parts[0]
    b = parts[3].astype(np.uint32) << 16 | parts[2]
    type_, true = ("u32", 0xFFFF) if result == "u32" else (f"{source}x2", one)
    got = execute(f"set.ltu.{type_}.{source}x2 %d, %a, %b;", a, b, out=np.uint32)
    for low, high, low_b, high_b, d in zip(*(v.tolist() for v in (*parts, got)), strict=True):
        halves = [(low, low_b), (high, high_b)]
        truths = [float_comparison("ltu", form.decode(x), form.decode(y)) for x, y in halves]
        assert d == truths[1] * true << 16 | truths[0] * true


def test_ftz_compares_subnormals_as_zero(execute):
    """PTX ISA §9.7.6.2 setp.ftz"""
    a = np.full(32, 2.0**-140, np.float32)
    assert execute("setp.gt.f32 %p, %a, 0f00000000;" + SELECT, a, out=np.uint32)[0] == 1
    assert execute("setp.gt.ftz.f32 %p, %a, 0f00000000;" + SELECT, a, out=np.uint32)[0] == 0


def test_slct_selects_by_the_sign_of_its_third_operand(execute, integers, as_signed):
    """PTX ISA §9.7.6.4 slct"""
    a, b, c = (integers(32, seed) for seed in (1, 2, 3))
    got = execute("slct.u32.s32 %d, %a, %b, %c;", a, b, c, out=np.uint32)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        assert d == (x if as_signed(z, 32) >= 0 else y)


def test_slct_with_ftz_takes_a_subnormal_for_zero(execute):
    """PTX ISA §9.7.6.4: subnormal values of c are flushed to zero, which selects a"""
    c = np.full(32, -(2.0**-140), np.float32)
    a, b = np.full(32, 7, np.uint32), np.full(32, 9, np.uint32)
    assert execute("slct.u32.f32 %d, %a, %b, %c;", a, b, c, out=np.uint32)[0] == 9
    assert execute("slct.ftz.u32.f32 %d, %a, %b, %c;", a, b, c, out=np.uint32)[0] == 7


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_selp_picks_by_predicate(execute, integers, bits):
    """PTX ISA §9.7.6.3 selp"""
    a, b = integers(bits, 1), integers(bits, 2)
    got = execute(f"setp.lt.u32 %p, %lane, 7; selp.b{bits} %d, %a, %b, %p;", a, b, out=a.dtype)
    assert got.tolist() == a[:7].tolist() + b[7:].tolist()


def test_ordering_of_untyped_operands_is_refused(trap_of, integers):
    """PTX ISA §9.7.6.2: bit-size types compare for equality only"""
    trap = trap_of("setp.lt.b32 %p, %a, %a;" + SELECT, integers(32, 1))
    assert trap.category == "unmodelled"


@pytest.mark.parametrize("type_", ["u16", "s16"])
def test_set_of_single_precision_has_no_results_of_16_bits(trap_of, type_):
    """PTX ISA §9.7.6.1 set, as ptxas takes it: halves alone give them"""
    ones = np.ones(32, np.float32)
    trap = trap_of(f".reg .b16 %h; set.lt.{type_}.f32 %h, %a, %b; mov.u32 %d, 0;", ones, ones)
    assert trap.category == "type"

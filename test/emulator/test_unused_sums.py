"""A sum that nothing is done with, beside sums that are stored: another one was taken twice."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator.checks.unused_sums import unused_sums
from tilewright.runtime.emulator.host.programs import load_program

HEAD = """.version 8.8
.target {chip}
.address_size 64
.visible .entry k(.param .u64 out) {{
  .reg .b64 %out, %d<4>; .reg .b32 %r<40>, %h<20>; .reg .f32 %s<20>, %t<20>; .reg .pred %p<4>;
  ld.param.u64 %out, [out]; mov.u32 %r30, 0; mov.u32 %r31, 0;
"""
LOAD = """  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%r30];
  tcgen05.wait::ld.sync.aligned;
  mov.b64 %d0, {%r0, %r1};
  add.rn.f32x2 %d1, %d0, %d0;
  mov.b64 {%h0, %h1}, %d1;
  cvt.rn.bf16x2.f32 %h2, %h1, %h0;
  cvt.rn.bf16x2.f32 %h3, %r3, %r2;
  cvt.rn.bf16x2.f32 %h4, %r5, %r4;
  cvt.rn.bf16x2.f32 %h5, %r7, %r6;
  st.global.v4.b32 [%out], {%h2, %h3, %h4, %h5};
  ret;
"""
MMA = """  mov.b32 %s0, 0f00000000; mov.b32 %s1, 0f00000000; mov.b32 %s2, %s0; mov.b32 %s3, %s0;
LOOP:
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%t0, %t1, %t2, %t3},
    {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%s0, %s1, %s2, %s3};
  mov.f32 %s0, %t0; mov.f32 %s1, %t1; mov.f32 %s2, %t2; mov.f32 %s3, %t3;
  add.u32 %r31, %r31, 1; setp.lt.u32 %p0, %r31, 4;
  @%p0 bra LOOP;
  st.global.v4.f32 [%out], {%s0, %s1, %s2, %s3};
  ret;
"""
WGMMA = """  mov.b64 %d0, 0; mov.b64 %d1, 0; setp.ne.u32 %p0, %r30, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%s0, %s1, %s2, %s3}, %d0, %d1, %p0,
    1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.v2.f32 [%out], {%s0, %s1};
  st.global.v2.f32 [%out+8], {%s2, %s3};
  ret;
"""


def told(body: str, chip: str = "sm_100a") -> tuple[tuple[str, str], ...]:
    return unused_sums(load_program(HEAD.format(chip=chip) + body + "}", "k"))


@pytest.mark.parametrize(
    ("body", "chip"), [(LOAD, "sm_100a"), (MMA, "sm_100a"), (MMA, "sm_80"), (WGMMA, "sm_90a")]
)
def test_sums_that_are_all_stored_say_nothing(body, chip):
    assert told(body, chip) == ()


@pytest.mark.parametrize(
    ("body", "chip", "right", "wrong", "left", "of"),
    [
        (LOAD, "sm_100a", "%r3, %r2;", "%r3, %r4;", 2, 8),
        (LOAD, "sm_100a", "{%r0, %r1};", "{%r1, %r1};", 0, 8),
        (LOAD, "sm_100a", "%h2, %h1, %h0", "%h2, %h1, %h1", 0, 8),
        (LOAD, "sm_100a", "%h2, %h1, %h0", "%h2, %h0, %h0", 1, 8),
        (MMA, "sm_80", "{%s0, %s1, %s2, %s3};\n  ret", "{%s0, %s0, %s2, %s3};\n  ret", 1, 4),
        (WGMMA, "sm_90a", "{%s2, %s3};\n  ret", "{%s3, %s3};\n  ret", 2, 4),
    ],
)
def test_a_sum_that_is_taken_for_another_leaves_that_one_out(body, chip, right, wrong, left, of):
    ((category, message),) = told(body.replace(right, wrong), chip)
    assert category == "unused-sums"
    assert f"1 of the {of} registers of" in message and f"number {left} (from 0)" in message


ZEROS_FIRST = MMA.replace("LOOP:", "  st.global.v2.f32 [%out+16], {%s1, %s3};\nLOOP:")


def test_what_a_register_held_before_the_sums_is_no_use_of_them():
    """LLVM begins several products with one register of zeros, which later holds a sum."""
    odd_columns_left = ("v4.f32 [%out], {%s0, %s1, %s2, %s3}", "v2.f32 [%out], {%s0, %s2}")
    assert told(ZEROS_FIRST.replace(*odd_columns_left), "sm_80") == ()
    ((_, message),) = told(ZEROS_FIRST.replace("{%s0, %s1, %s2", "{%s0, %s0, %s2"), "sm_80")
    assert "number 1 (from 0)" in message


def test_the_last_sums_may_be_columns_that_do_not_exist():
    assert told(LOAD.replace("%h5, %r7, %r6", "%h5, %r6, %r6")) == ()


def test_the_last_column_of_two_rows_of_wgmma_may_not_exist():
    names = [f"%s{at}" for at in range(16)]
    body = WGMMA.replace("m64n8k16", "m64n32k16").replace(
        "{%s0, %s1, %s2, %s3}, %d0", "{SUMS}, %d0"
    )
    body = body.replace("SUMS", ", ".join(names))
    stores = "".join(f"  st.global.f32 [%out+{4 * at}], %s{at};\n" for at in range(4, 16))
    both = body.replace("  ret;", stores + "  ret;")
    assert told(both, "sm_90a") == ()
    odd = both.replace("], %s13;", "], %s12;").replace("], %s15;", "], %s14;")
    assert told(odd, "sm_90a") == ()
    ((category, message),) = told(odd.replace("], %s11;", "], %s12;"), "sm_90a")
    assert category == "unused-sums" and "number 11, 13, 15 (from 0)" in message


def test_many_sums_may_be_rows_that_do_not_exist():
    half = "st.global.v2.b32 [%out], {%h3, %h5};"
    assert told(LOAD.replace("st.global.v4.b32 [%out], {%h2, %h3, %h4, %h5};", half)) == ()


def test_a_sum_that_decides_a_branch_is_used():
    body = LOAD.replace("%r3, %r2;", "%r3, %r3;").replace(
        "  ret;", "  setp.ne.u32 %p1, %r2, 0;\n  @%p1 trap;\n  ret;"
    )
    assert told(body) == ()


SCALED = """  ld.global.f32 %s8, [%out+64]; ld.global.v2.f32 {%s9, %s10}, [%out+72];
  ld.volatile.global.f32 %s11, [%out];
""" + MMA.replace("  st.global.v4", "  fma.rn.f32 %s0, %s8, %s9, %s0;\n  st.global.v4")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (SCALED, []),  # of a vector one may be left, and a volatile load is for its own sake
        (SCALED.replace("%s8, %s9, %s0", "%s10, %s9, %s0"), [7]),
        (SCALED.replace("%s8, %s9, %s0", "%s8, %s8, %s0"), [7]),
        (SCALED.replace("%s8, %s9, %s0", "%s0, %s0, %s0"), [7, 7]),
    ],
)
def test_loads_of_which_nothing_is_used(text, lines):
    program = load_program(HEAD.format(chip="sm_90a") + text + "}\n", "k")
    told = [message for category, message in unused_sums(program) if category == "unused-load"]
    assert [int(message.split(":")[1]) for message in told] == lines


def test_of_a_vector_that_is_loaded_some_may_be_left():
    stored = "  ld.global.v2.f32 {%s13, %s14}, [%out+80]; st.global.f32 [%out+96], %s13;\n" + MMA
    assert told(stored, "sm_90a") == ()
    ((category, _),) = told(stored.replace("], %s13;", "], %s12;"), "sm_90a")
    assert category == "unused-load"


OF_A = "  ld.shared.b32 %r4, [%r30]; ld.shared.b32 %r5, [%r30+4];\n" + MMA


@pytest.mark.parametrize(
    "text",
    [
        SCALED.replace("%s8, %s9, %s0;", "%s8, %s9, %s0;\n  fma.rn.f32 %s12, %s10, %s8, %s3;")
        .replace("ld.global.v2.f32 {%s9, %s10}, [%out+72]", "ld.global.f32 %s10, [%out+72]")
        .replace("{%s0, %s1, %s2, %s3};\n  ret", "{%s0, %s1, %s2, %s2};\n  ret"),
        OF_A.replace("{%s0, %s1, %s2, %s3};\n  ret", "{%s8, %s8, %s8, %s8};\n  ret"),
    ],
)
def test_loads_of_columns_that_do_not_exist_say_nothing(text):
    """A bias is added to sums that nobody needs, and an operand is multiplied for them alone."""
    assert told(text, "sm_90a") == ()


def test_loads_of_kernels_without_products_say_nothing():
    program = load_program(HEAD.format(chip="sm_90a") + "ld.global.b32 %r0, [%out]; ret;\n}\n", "k")
    assert unused_sums(program) == ()

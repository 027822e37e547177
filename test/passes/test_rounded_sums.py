"""Which sums in registers with names are rounded where they are, and which are copied."""

import re

import pytest

from tilewright.compiler.pipeline import run_passes_on_text

SUMS = "!llvm.struct<(f32, f32, f32, f32)>"
DESCRIPTOR = (
    "!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, "
    'swizzle = "128B", version = 0 : i64}>'
)
FIELDS = (
    'a_type = "bf16", b_type = "bf16", d_type = "f32", k = 16 : i64, a_major = "k", b_major = "k",'
    " m = 64 : i64, n = 8 : i64, first = 0 : i64, a_offset = 0 : i64, b_offset = 0 : i64"
)
MMA = f"""
  %before = llvm.load %slot : !llvm.ptr -> {SUMS}
  %sum = "sm.wgmma"(%before, %a, %b, %true) {{{FIELDS}}}
    : ({SUMS}, {DESCRIPTOR}, {DESCRIPTOR}, i1) -> {SUMS}
  llvm.store %sum, %slot : {SUMS}, !llvm.ptr
"""
READ = f"""
  %held = llvm.load %slot : !llvm.ptr -> {SUMS}
  %pin = "sm.pin"(%held) : ({SUMS}) -> {SUMS}
  %s0 = llvm.extractvalue %pin[0] : {SUMS}
  %s1 = llvm.extractvalue %pin[1] : {SUMS}
  %s2 = llvm.extractvalue %pin[2] : {SUMS}
  %s3 = llvm.extractvalue %pin[3] : {SUMS}
"""
STEP = "  scf.for %k = %from to %end step %to {\n"


def rounded(name, low, high, half="bf16"):
    """Two sums as one word in memory."""
    return f"""
  %{name} = vector.from_elements %{low}, %{high} : vector<2xf32>
  %{name}h = arith.truncf %{name} : vector<2xf32> to vector<2x{half}>
  llvm.store %{name}h, %out : vector<2x{half}>, !llvm.ptr<1>
"""


def asms(body):
    """The asms behind the declaration of registers, by their first word and what they read."""
    kernel = f"""
"sm.kernel"() ({{
^bb0(%out: !llvm.ptr<1>):
  %i = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %from = arith.constant 0 : index
  %to = arith.constant 1 : index
  %end = arith.constant 2 : index
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  %a = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %b = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %slot = llvm.alloca %one x {SUMS} : (i32) -> !llvm.ptr
{body}}}) {{cluster = [1, 1, 1], launch = "{{\\"entry\\": \\"f\\", \\"schedule\\": {{}}}}",
     sym_name = "f", threads = 128 : i64}} : () -> ()
"""
    lowered = run_passes_on_text(kernel, "-", "lower-to-nvvm", target="sm_90a")
    found = re.findall(r'llvm\.inline_asm has_side_effects "([^"]*)"', lowered)
    return [text for text in found if not text.startswith(".reg")]


@pytest.mark.parametrize("half", ["bf16", "f16"])
def test_a_pair_that_is_only_rounded_is_read_where_it_is(half):
    body = MMA + READ + rounded("x", "s0", "s1", half) + rounded("y", "s2", "s3", half)
    _, *conversions = asms(body)
    assert conversions == [
        f"cvt.rn.{half}x2.f32 $0, %sums0_1, %sums0_0;",
        f"cvt.rn.{half}x2.f32 $0, %sums0_3, %sums0_2;",
    ]


def test_a_conversion_stands_where_the_rounding_stood():
    inside = STEP + rounded("x", "s3", "s0") + "  }\n"
    _, *conversions = asms(MMA + READ + inside)
    assert conversions == ["cvt.rn.bf16x2.f32 $0, %sums0_0, %sums0_3;"]


@pytest.mark.parametrize(
    "between",
    [MMA, STEP + MMA + "  }\n"],
    ids=["in the block", "in a loop"],
)
def test_sums_that_an_mma_writes_before_they_are_rounded_are_copied(between):
    again = between.replace("%before", "%then").replace("%sum", "%next")
    first, copy, second = asms(MMA + READ + again + rounded("x", "s0", "s1"))
    assert first.startswith("wgmma") and second.startswith("wgmma")
    assert copy.startswith("mov.b32 $0, %sums0_0;")


@pytest.mark.parametrize(
    "use",
    [
        "  llvm.store %s3, %out : f32, !llvm.ptr<1>\n",
        """
  %y = vector.from_elements %s2, %s3 : vector<2xf32>
  llvm.store %y, %out : vector<2xf32>, !llvm.ptr<1>
""",
        rounded("y", "s2", "s3") + "  llvm.store %y, %out : vector<2xf32>, !llvm.ptr<1>\n",
        f"  llvm.store %pin, %out : {SUMS}, !llvm.ptr<1>\n",
        "  %c = arith.constant 0.0 : f32\n" + rounded("y", "s2", "c"),
        "  %c = arith.constant 0.0 : f32\n" + rounded("y", "c", "s2"),
    ],
    ids=["alone", "not rounded", "pair twice", "all", "another low", "another high"],
)
def test_sums_that_something_else_reads_are_copied(use):
    _, copy = asms(MMA + READ + rounded("x", "s0", "s1") + use)
    assert copy.startswith("mov.b32 $0, %sums0_0;")

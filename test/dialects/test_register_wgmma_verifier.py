"""What `sm.wgmma_of_registers` can know is wrong."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

SUMS = "!llvm.struct<(f32, f32, f32, f32)>"
DESCRIPTOR = (
    "!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, "
    'swizzle = "128B", version = 0 : i64}>'
)
FIELDS = {
    "a_type": '"bf16"', "b_major": '"k"', "b_offset": "0 : i64", "b_type": '"bf16"',
    "d_type": '"f32"', "k": "16 : i64", "m": "64 : i64", "n": "8 : i64",
}  # fmt: skip


def kernel(words="vector<4xi32>", sums=SUMS, **fields):
    given = ", ".join(f"{name} = {value}" for name, value in (FIELDS | fields).items())
    return f"""
"sm.kernel"() ({{
^bb0(%map: !llvm.ptr):
  %i = arith.constant 0 : i32
  %true = arith.constant true
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  %b = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %a = arith.constant dense<0> : {words}
  %z = llvm.mlir.zero : {SUMS}
  %s = "sm.wgmma_of_registers"(%z, %a, %b, %true) {{{given}}}
    : ({SUMS}, {words}, {DESCRIPTOR}, i1) -> {sums}
}}) {{cluster = [1, 1, 1], launch = "{{\\"entry\\": \\"f\\", \\"schedule\\": {{}}}}",
     sym_name = "f", threads = 128 : i64}} : () -> ()
"""


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"m": "128 : i64"}, "m and k must be 64 and 16, got 128 and 16"),
        ({"k": "32 : i64"}, "m and k must be 64 and 16, got 64 and 32"),
        ({"words": "vector<2xi32>"}, "a must be four words, got vector<2xi32>"),
        ({"words": "vector<4xi16>"}, "a must be four words, got vector<4xi16>"),
        (
            {"sums": "!llvm.struct<(f32, f32)>"},
            f"must give a {SUMS}, got a !llvm.struct<(f32, f32)>",
        ),
        (
            {"b_type": '"f16"'},
            "a and b must both be bf16 or f16, summed in f32, got bf16, f16, f32",
        ),
        (
            {"a_type": '"e4m3"', "b_type": '"e4m3"'},
            "a and b must both be bf16 or f16, summed in f32, got e4m3, e4m3, f32",
        ),
        ({"n": "12 : i64"}, "n must be a multiple of 8 up to 256, got 12"),
        ({"b_major": '"n"'}, "b_major must be one of ('k', 'mn'), got 'n'"),
        (
            {"b_offset": "8 : i64"},
            "b_offset must be a multiple of 16 bytes up to 262128, got 8",
        ),
    ],
)
def test_an_mma_that_no_wgmma_is_is_refused(edits, message):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(kernel(**edits), "-", "lower-to-nvvm", target="sm_90a")
    assert caught.value.message == f"sm.wgmma_of_registers: {message}"


def test_the_one_that_is_lowers():
    run_passes_on_text(kernel(), "-", "lower-to-nvvm", target="sm_90a")


@pytest.mark.parametrize(
    ("words", "kept", "message"),
    [
        ("vector<4xf32>", "vector<4xf32>", "before must be a vector of i32, got vector<4xf32>"),
        ("vector<2x2xi32>", "vector<2x2xi32>", "before must be a vector of i32, got"),
        ("vector<4xi32>", "vector<2xi32>", "must give a vector<4xi32>, got a vector<2xi32>"),
    ],
)
def test_registers_that_are_kept_are_words_and_stay_as_many(words, kept, message):
    zero = "0.0" if "f32" in words else "0"
    keep = (
        f'  %w = arith.constant dense<{zero}> : {words}\n  %k = "sm.keep"(%w) : ({words}) -> {kept}'
    )
    text = kernel().replace("  %true = ", f"{keep}\n  %true = ")
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", "lower-to-nvvm", target="sm_90a")
    assert caught.value.message.startswith(f"sm.keep: {message}")

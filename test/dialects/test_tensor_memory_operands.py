"""What `sm.tmem_store` and `sm.mma_of_tensor_memory` can know is wrong."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

DESCRIPTOR = (
    "!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, "
    'swizzle = "128B", version = 1 : i64}>'
)
FIELDS = {
    "a_type": '"bf16"', "b_major": '"k"', "b_offset": "0 : i64", "b_type": '"bf16"',
    "d_type": '"f32"', "k": "16 : i64", "m": "64 : i64", "n": "8 : i64",
}  # fmt: skip
STORE = {"shape": '"32x32b"', "offset": "0 : i64"}


def kernel(words="vector<4xi32>", store=STORE, **fields):
    said = [
        ", ".join(f"{name} = {value}" for name, value in each.items())
        for each in (STORE | store, FIELDS | fields)
    ]
    return f"""
"sm.kernel"() ({{
^bb0(%map: !llvm.ptr):
  %i = arith.constant 0 : i32
  %true = arith.constant true
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  %b = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %w = arith.constant dense<0> : {words}
  "sm.tmem_store"(%i, %w) {{{said[0]}}} : (i32, {words}) -> ()
  "sm.tmem_store_wait"() : () -> ()
  "sm.mma_of_tensor_memory"(%i, %i, %b, %true) {{{said[1]}}}
    : (i32, i32, {DESCRIPTOR}, i1) -> ()
}}) {{cluster = [1, 1, 1], launch = "{{\\"entry\\": \\"f\\", \\"schedule\\": {{}}}}",
     sym_name = "f", threads = 128 : i64}} : () -> ()
"""


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"m": "32 : i64"}, "m must be 64 or 128, and k 16, got 32 and 16"),
        ({"k": "32 : i64"}, "m must be 64 or 128, and k 16, got 64 and 32"),
        ({"n": "12 : i64"}, "n must be a multiple of 8 up to 256, got 12"),
        ({"m": "128 : i64"}, "n must be a multiple of 16 up to 256, got 8"),
        ({"n": "264 : i64"}, "n must be a multiple of 8 up to 256, got 264"),
        (
            {"b_type": '"f16"'},
            "a and b must both be bf16 or f16, summed in f32, got bf16, f16, f32",
        ),
        (
            {"a_type": '"s8"', "b_type": '"s8"', "d_type": '"s32"'},
            "a and b must both be bf16 or f16, summed in f32, got s8, s8, s32",
        ),
        ({"b_major": '"n"'}, "b_major must be one of ('k', 'mn'), got 'n'"),
        ({"b_offset": "8 : i64"}, "b_offset must be a multiple of 16 bytes up to 262128, got 8"),
    ],
)
def test_an_mma_that_no_tcgen05_mma_is_is_refused(edits, message):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(kernel(**edits), "-", "lower-to-nvvm", target="sm_100a")
    assert caught.value.message == f"sm.mma_of_tensor_memory: {message}"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            {"store": {"shape": '"16x256b"'}},
            "shape must be one of ('32x32b', '16x32bx2'), got '16x256b'",
        ),
        (
            {"store": {"offset": "8 : i64"}},
            "offset must be columns of 16x32bx2, else 0, got 8 with 32x32b",
        ),
        (
            {"store": {"shape": '"16x32bx2"'}},
            "offset must be columns of 16x32bx2, else 0, got 0 with 16x32bx2",
        ),
        ({"words": "vector<1xi32>"}, "words must be 2 to 128, a power of 2, got vector<1xi32>"),
        (
            {"words": "vector<12xi32>"},
            "words must be 2 to 128, a power of 2, got vector<12xi32>",
        ),
        (
            {"words": "vector<4xi64>"},
            "words must be 2 to 128, a power of 2, got vector<4xi64>",
        ),
    ],
)
def test_a_store_that_no_tcgen05_st_is_is_refused(edits, message):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(kernel(**edits), "-", "lower-to-nvvm", target="sm_100a")
    assert caught.value.message.startswith(f"sm.tmem_store: {message}")


def test_those_that_are_lower():
    lowered = run_passes_on_text(kernel(), "-", "lower-to-nvvm", target="sm_100a")
    assert "nvvm.tcgen05.wait <store>" in lowered

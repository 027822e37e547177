"""What an MMA of registers, or one with block scales, can know is wrong."""

import pytest
from sm_texts import MMA, attributes, descriptor, kernel, message_of

from tilewright.dialects.dtypes import DTYPES, scaled_mma_of_kind
from tilewright.passes.lowering.operands.descriptors import scaled_instruction_descriptor

SUMS = "!llvm.struct<(f32, f32, f32, f32)>"


def fragments(a=4, b=2, k=16, type_="bf16"):
    fields = {"a_type": f'"{type_}"', "b_type": '"bf16"', "d_type": '"f32"', "k": k}
    return f"""
  %a = arith.constant dense<0> : vector<{a}xi32>
  %b = arith.constant dense<0> : vector<{b}xi32>
  %z = llvm.mlir.zero : {SUMS}
  %s = "sm.mma_sync"(%z, %a, %b) {{{attributes(fields)}}}
    : ({SUMS}, vector<{a}xi32>, vector<{b}xi32>) -> {SUMS}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (fragments(a=2), "sm.mma_sync: a must have 4 words with k 16, got [2]"),
        (fragments(b=4), "sm.mma_sync: b must have 2 words with k 16, got [4]"),
        (fragments(k=32), "sm.mma_sync: k must be one of (8, 16), got 32"),
        (
            fragments(type_="tf32", k=8),
            "sm.mma_sync: b_type must be one of ('tf32', '3xtf32'), got 'bf16'",
        ),
        (
            '%w = "sm.ldmatrix"(%p) {offset = 0 : i64, transposed = 2 : i64} '
            ": (!llvm.ptr<3>) -> vector<4xi32>",
            "sm.ldmatrix: transposed must be 0 to 1, got 2",
        ),
        (
            '%w = "sm.ldmatrix"(%p) {offset = 0 : i64, transposed = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<3xi32>",
            "sm.ldmatrix: must give one of (1, 2, 4) words, got vector<3xi32>",
        ),
        (
            '%w = "sm.ldmatrix_padded"(%p) {bits = 4 : i64, offset = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<3xi32>",
            "sm.ldmatrix_padded: must give one of (1, 2, 4) words, got vector<3xi32>",
        ),
        (
            '%w = "sm.ldmatrix_padded"(%p) {bits = 8 : i64, offset = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<4xi32>",
            "sm.ldmatrix_padded: bits must be one of [4, 6], got 8",
        ),
        (
            '%w = "sm.load_once"(%map) : (!llvm.ptr) -> vector<4xbf16>',
            "sm.load_once: must give a vector of 16 bytes, got vector<4xbf16>",
        ),
        (
            '%w = "sm.load_once"(%p) : (!llvm.ptr<3>) -> vector<4xf32>',
            "sm.load_once: address must be !llvm.ptr or !llvm.ptr<1>, got !llvm.ptr<3>",
        ),
        (
            '%w = "sm.ldmatrix"(%map) {offset = 0 : i64, transposed = 0 : i64} '
            ": (!llvm.ptr) -> vector<4xi32>",
            "sm.ldmatrix: address must be !llvm.ptr<3>, got !llvm.ptr",
        ),
    ],
)
def test_fragments_that_no_instruction_has(body, message):
    assert message_of(kernel(body)) == message


def scaled_fragments(a=4, kind="mxf8f6f4", type_="e4m3", id_=0, block=32):
    fields = {
        "kind": f'"{kind}"',
        "block": block,
        "scale": '"ue8m0"',
        "a_type": f'"{type_}"',
        "b_type": f'"{type_}"',
        "id": id_,
    }
    return f"""
  %a = arith.constant dense<0> : vector<{a}xi32>
  %b = arith.constant dense<0> : vector<2xi32>
  %z = llvm.mlir.zero : {SUMS}
  %s = "sm.scaled_mma_sync"(%z, %a, %b, %i, %i) {{{attributes(fields)}}}
    : ({SUMS}, vector<{a}xi32>, vector<2xi32>, i32, i32) -> {SUMS}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (scaled_fragments(a=2), "a and b must have 4 and 2 words, got [[2], [2]]"),
        (scaled_fragments(kind="mxf4", type_="e2m1", id_=1), "id must be one of (0, 2), got 1"),
        (
            scaled_fragments(kind="mxf4", block=16),
            "block must be one that mxf4 has with ue8m0, got 16",
        ),
        (
            scaled_fragments(type_="e8m0"),
            "a_type must be one of ('e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'), got 'e8m0'",
        ),
        (
            scaled_fragments(kind="mx8"),
            "kind must be one of ('mxf4', 'mxf4nvf4', 'mxf8f6f4'), got 'mx8'",
        ),
    ],
)
def test_scaled_fragments_that_no_instruction_has(body, message):
    assert message_of(kernel(body)) == f"sm.scaled_mma_sync: {message}"


SCALED = {
    **{name: value for name, value in MMA.items() if name not in ("d_type", "k")},
    "a_type": '"e4m3"',
    "b_type": '"e2m1"',
    "kind": '"mxf8f6f4"',
    "block": 32,
    "scale": '"ue8m0"',
    "a_id": 3,
    "b_id": 3,
}


def scaled_mma(**fields):
    made = descriptor()
    return (
        f'%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {made}\n'
        f'"sm.scaled_mma"(%i, %d, %d, %true, %i, %i) {{{attributes({**SCALED, **fields})}}}'
        f" : (i32, {made}, {made}, i1, i32, i32) -> ()"
    )


FOUR_BITS = {"kind": '"mxf4"', "a_type": '"e2m1"', "a_id": 2, "b_id": 0}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            scaled_mma(kind='"f8f6f4"'),
            "kind must be one of ('mxf4', 'mxf4nvf4', 'mxf8f6f4'), got 'f8f6f4'",
        ),
        (scaled_mma(m=64), "m must be 128 with cta_group 1, got 64"),
        (scaled_mma(n=264), "n must be a multiple of 8 up to 256, got 264"),
        (scaled_mma(**FOUR_BITS | {"a_id": 1}), "a_id must be one of (0, 2), got 1"),
        (
            scaled_mma(**FOUR_BITS | {"a_type": '"e4m3"'}),
            "a_type must be one of ('e2m1',), got 'e4m3'",
        ),
        (
            scaled_mma(a_offset=24),
            "a_offset must be a multiple of 16 bytes up to 262128, got 24",
        ),
    ],
)
def test_mmas_with_block_scales_that_no_instruction_is(body, message):
    assert message_of(kernel(body)) == f"sm.scaled_mma: {message}"


def test_instruction_descriptors_of_block_scaled_mmas_are_the_worked_ones():
    """PTX ISA, instruction descriptor of .kind::mxf8f6f4, mxf4 and mxf4nvf4."""
    e4m3, e2m1 = DTYPES["e4m3"], DTYPES["e2m1"]
    cases = {
        (128, "mxf8f6f4", 32, e4m3, 0): 0x08C00000,
        (128, "mxf8f6f4", 32, e4m3, 3): 0x08C00000 + 3 * 0x20000010,
        (128, "mxf4", 32, e2m1, 0): 0x08C00480,
        (128, "mxf4", 32, e2m1, 2): 0x48C004A0,
        (128, "mxf4nvf4", 32, e2m1, 2): 0x48C004A0,
        (128, "mxf4nvf4", 16, e2m1, 0): 0x08400480,
        (256, "mxf4nvf4", 16, e2m1, 0): 0x10400480,
    }
    for (m, kind, block, dtype, byte), word in cases.items():
        mma = scaled_mma_of_kind(kind, block, "ue4m3" if block == 16 else "ue8m0")
        assert mma is not None
        made = scaled_instruction_descriptor(m, 256, mma, (dtype, dtype), ("k", "k"), (byte, byte))
        assert made == word, (hex(made), hex(word))
    powers = scaled_mma_of_kind("mxf4nvf4", 16, "ue8m0")
    assert powers is not None  # bit 23 says ue8m0
    made = scaled_instruction_descriptor(128, 256, powers, (e2m1, e2m1), ("k", "k"), (0, 0))
    assert made == 0x08400480 | 1 << 23

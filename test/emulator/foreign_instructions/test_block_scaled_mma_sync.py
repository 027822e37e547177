"""mma.sync of small elements on sm_120a: fragments, scales, their selectors and what is refused.

Sources: PTX ISA §9.7.14.3 and the fragment figures of §9.7.14.5; where scales lie, by lanes, also
from probes of an sm_120 GPU.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

KINDS = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
SHIFT = {"e2m1": 2}
TARGET = {"target": "sm_120a"}


def random_codes(rng, shape, name: str) -> np.ndarray:
    """Codes of small exact numbers."""
    values = rng.integers(-4, 5, shape) / 2
    return values.astype(KINDS[name]).view(np.uint8)


def numbers(codes: np.ndarray, name: str) -> np.ndarray:
    return codes.view(KINDS[name]).astype(np.float64)


def word_of(codes, name: str, wide: bool) -> int:
    """A register of four elements in bytes, or of eight in halves of them."""
    if not wide:
        return sum(int(code) << 4 * place for place, code in enumerate(codes))
    return sum(int(code) << SHIFT.get(name, 0) + 8 * place for place, code in enumerate(codes))


def registers(codes: np.ndarray, name: str, rows: int) -> np.ndarray:
    """uint32[32, registers] of [rows, k]: groups of four lanes have a row, registers go on by eight
    rows and then by 16 bytes along K."""
    wide = codes.shape[1] == 32
    each = 4 if wide else 8
    out = np.zeros((32, rows // 8 * 2), np.uint32)
    for lane, register in np.ndindex(out.shape):
        half, step = register % (rows // 8), register // (rows // 8)
        row, first = lane // 4 + 8 * half, 4 * each * step + each * (lane % 4)
        out[lane, register] = word_of(codes[row, first : first + each], name, wide)
    return out


def scale_words(rng, scales: np.ndarray, lane_of, byte: int) -> np.ndarray:
    """uint32[32] with the scales of each row in its lane, and garbage elsewhere."""
    raw = rng.integers(0, 256, (32, 4), np.uint8)
    for row, codes in enumerate(scales):
        raw[lane_of(row), byte : byte + len(codes)] = codes
    return raw.view(np.uint32).reshape(-1)


BODY = """
mad.wide.u32 %rd20, %lane, 16, %rd0; ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd20];
mad.wide.u32 %rd20, %lane, 8, %rd1; ld.global.v2.b32 {{%r24, %r25}}, [%rd20];
mad.wide.u32 %rd20, %lane, 16, %rd2; ld.global.v4.b32 {{%r26, %r27, %r28, %r29}}, [%rd20];
mad.wide.u32 %rd20, %lane, 4, %rd3; ld.global.b32 %r30, [%rd20];
mad.wide.u32 %rd20, %lane, 4, %rd4; ld.global.b32 %r31, [%rd20];
{opcode} {{%r40, %r41, %r42, %r43}}, {{%r20, %r21, %r22, %r23}}, {{%r24, %r25}},
  {{%r26, %r27, %r28, %r29}}{scales};
mad.wide.u32 %rd20, %lane, 16, %rd5; st.global.v4.b32 [%rd20], {{%r40, %r41, %r42, %r43}};
"""


def result(out: np.ndarray) -> np.ndarray:
    """float32[16, 8] of the registers of D."""
    d = np.zeros((16, 8), np.float32)
    for lane, i in np.ndindex(32, 4):
        d[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] = out.view(np.float32)[lane, i]
    return d


def multiply(run, poisoned, types, k, opcode, ids=None, blocks=0, scale="ue8m0"):
    """D of a random product, and what it must be."""
    rng = np.random.default_rng([k, blocks, *map(ord, types[0] + types[1])])
    a, b = (random_codes(rng, (rows, k), name)
            for rows, name in zip((16, 8), types, strict=True))  # fmt: skip
    c = rng.integers(-8, 9, (32, 4)).astype(np.float32)
    left, right = numbers(a, types[0]), numbers(b, types[1])
    words = [np.zeros(32, np.uint32)] * 2
    selectors = ""
    if blocks:
        low, high = (124, 131) if scale == "ue8m0" else (0x28, 0x48)
        byte_a, thread_a, byte_b, thread_b = ids
        sfa, sfb = (rng.integers(low, high, (rows, blocks), np.uint8) for rows in (16, 8))
        words = [scale_words(rng, sfa, lambda m: 4 * (m % 8) + 2 * thread_a + m // 8, byte_a),
                 scale_words(rng, sfb, lambda n: 4 * n + thread_b, byte_b)]  # fmt: skip
        kind = ml_dtypes.float8_e8m0fnu if scale == "ue8m0" else ml_dtypes.float8_e4m3fn
        left = left * np.repeat(sfa.view(kind).astype(np.float64), k // blocks, axis=1)
        right = right * np.repeat(sfb.view(kind).astype(np.float64), k // blocks, axis=1)
        selectors = f", %r30, {{{byte_a}, {thread_a}}}, {{%r31}}, {{{byte_b}, {thread_b}}}"
    out = poisoned((32, 4), np.uint32)
    body = BODY.format(opcode=opcode, scales=selectors)
    run(body, registers(a, types[0], 16), registers(b, types[1], 8), c, *words, out, **TARGET)
    return result(out), (left @ right.T + result(c.view(np.uint32))).astype(np.float32)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("a", KINDS)
def test_elements_in_bytes_are_scaled_by_a_byte_of_each_row(run, poisoned, a, b):
    kind = "kind::mxf8f6f4.block_scale.scale_vec::1X"
    opcode = f"mma.sync.aligned.{kind}.m16n8k32.row.col.f32.{a}.{b}.f32.ue8m0"
    got, wanted = multiply(run, poisoned, (a, b), 32, opcode, (3, 1, 2, 3), 1)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("ids", [(0, 0, 0, 0), (1, 0, 3, 1), (2, 1, 0, 2)])
def test_selectors_name_byte_and_lanes(run, poisoned, ids):
    opcode = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0"
    got, wanted = multiply(run, poisoned, ("e4m3", "e2m1"), 32, opcode, ids, 1)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("kind", "vector", "scale", "ids"),
    [
        ("mxf4", "", "ue8m0", (0, 1, 2, 0)),
        ("mxf4", ".scale_vec::2X", "ue8m0", (2, 0, 0, 3)),
        ("mxf4nvf4", ".scale_vec::2X", "ue8m0", (2, 1, 2, 2)),
        ("mxf4nvf4", ".scale_vec::4X", "ue4m3", (0, 1, 0, 1)),
    ],
)
def test_elements_of_four_bits_are_scaled_by_blocks_along_k(
    run, poisoned, kind, vector, scale, ids
):
    start = f"mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale{vector}"
    opcode = f"{start}.f32.e2m1.e2m1.f32.{scale}"
    blocks = 4 if "4X" in vector else 2
    got, wanted = multiply(run, poisoned, ("e2m1", "e2m1"), 64, opcode, ids, blocks, scale)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("a", "b"), [("e2m1", "e5m2"), ("e3m2", "e2m3")])
def test_small_elements_multiply_without_scales_too(run, poisoned, a, b):
    opcode = f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{a}.{b}.f32"
    got, wanted = multiply(run, poisoned, (a, b), 32, opcode)
    np.testing.assert_array_equal(got, wanted)


FOUR = "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4}"
BYTES = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
HALVES = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale"


@pytest.mark.parametrize(
    ("text", "category", "part"),
    [
        (f"{BYTES} {FOUR}, %r1, {{4, 0}}, %r2, {{0, 0}};", "operand",
         "byte-id of A must be one of (0, 1, 2, 3), got 4"),
        (f"{BYTES} {FOUR}, %r1, {{0, 2}}, %r2, {{0, 0}};", "operand",
         "thread-id of A must be one of (0, 1), got 2"),
        (f"{HALVES}.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {FOUR}, %r1, {{0, 0}}, %r2, {{1, 0}};",
         "operand", "byte-id of B must be one of (0, 2), got 1"),
        (f"cvt.u16.u32 %h1, %lane; {BYTES} {FOUR}, %r1, {{%h1, 0}}, %r2, {{0, 0}};",
         "convergence", "byte-id of A must be the same in all lanes"),
        (f"{HALVES}.f32.e2m1.e2m1.f32.ue4m3 {FOUR}, %r1, {{0, 0}}, %r2, {{0, 0}};", "unmodelled",
         "scale_vec"),
        (f"{HALVES}.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3 {FOUR}, %r1, {{0, 0}}, %r2, {{0, 0}};",
         "unmodelled", "scales of .ue4m3 with .scale_vec::2X"),
    ],
)  # fmt: skip
def test_what_the_selectors_and_types_may_not_be_is_refused(trapped, text, category, part):
    trap = trapped(text, **TARGET)
    assert (trap.category, part in str(trap)) == (category, True), str(trap)


def test_other_chips_do_not_have_it(trapped):
    trap = trapped(f"{BYTES} {FOUR}, %r1, {{0, 0}}, %r2, {{0, 0}};", target="sm_100a")
    assert "needs .target sm_120a, sm_121a and .version 8.7" in str(trap)

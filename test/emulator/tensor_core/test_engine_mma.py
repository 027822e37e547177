"""tcgen05.mma and commit in small kernels (PTX ISA, "tcgen05.mma")."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap
from tilewright.runtime.emulator.machine import swizzle

K_MODES = (swizzle.NONE, swizzle.B32, swizzle.B64, swizzle.B128)
CASES = [
    (types, 128, 64, (mode_a, ta), (mode_b, tb))
    for types in (("bf16", "bf16"),)
    for mode_a, ta in [(m, False) for m in K_MODES] + [(m, True) for m in K_MODES]
    for mode_b, tb in ((swizzle.B128, False), (swizzle.B64, True))
] + [
    (("bf16", "bf16"), 64, 16, (swizzle.B128, False), (swizzle.NONE, True)),
    (("f16", "f16"), 64, 8, (swizzle.B64, True), (swizzle.NONE, False)),
    (("f16", "bf16"), 128, 256, (swizzle.B32, False), (swizzle.B128, True)),
    (("tf32", "tf32"), 128, 40, (swizzle.B128, False), (swizzle.B32, False)),
    (("tf32", "tf32"), 64, 32, (swizzle.B128_ATOM_32B, True), (swizzle.NONE, False)),
    (("tf32", "tf32"), 128, 64, (swizzle.NONE, False), (swizzle.B128_ATOM_32B, True)),
]


@pytest.mark.parametrize(
    ("types", "m", "n", "a_layout", "b_layout"), CASES,
    ids=[f"{t[0]}-{t[1]}-{m}x{n}-{a.name}{'-mn' * ta}-{b.name}{'-mn' * tb}"
         for t, m, n, (a, ta), (b, tb) in CASES],
)  # fmt: skip
def test_a_product_of_shared_operands_lands_in_the_accumulator(tc, types, m, n, a_layout, b_layout):
    kind = "tf32" if types[0] == "tf32" else "f16"
    k = 8 if kind == "tf32" else 16
    rng = np.random.default_rng(m + n)
    a, b = tc.random_matrix(rng, m, k, types[0]), tc.random_matrix(rng, n, k, types[1])
    image = bytearray(b"\x55" * 49152)
    adesc = tc.place_operand(image, a, *a_layout, 0)
    bdesc = tc.place_operand(image, b, *b_layout, 24576)
    majors = dict(transpose_a=a_layout[1], transpose_b=b_layout[1])
    idesc = tc.instruction_word(*types, "f32", m, n, **majors)
    load, out = tc.dump_d(m, n)
    body = tc.FALSE + tc.mma(kind) + tc.DONE + load
    report = tc.run(body, image, out, adesc, bdesc, idesc)
    np.testing.assert_array_equal(tc.read_d(out, m, n).view(np.float32), tc.product(a, b))
    assert report.engines["mma flops"] == 2 * m * n * k


ADVANCE = "add.s64 %rd2, %rd2, 2;\n add.s64 %rd3, %rd3, 2;\n"


@pytest.mark.parametrize("seed", range(4))
def test_k_steps_accumulate_in_issue_order(tc, seed):
    a, b, image, *words = tc.accumulating_case()
    load, out = tc.dump_d(128, 32)
    steps = tc.FALSE + tc.mma("f16") + (ADVANCE + tc.TRUE + tc.mma("f16")) * 3
    tc.run(steps + tc.DONE + load, image, out, *words, seed=seed)
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), tc.product(a, b))


@pytest.mark.parametrize("operand", [0, 1])
def test_a_descriptor_without_its_version_multiplies_where_libraries_are_run(tc, operand):
    """JAX's Mosaic writes it so."""
    a, b, image, *words = tc.accumulating_case()
    words[operand] &= ~(1 << 46)
    load, out = tc.dump_d(128, 32)
    body = tc.FALSE + tc.mma("f16") + tc.DONE + load
    with pytest.raises(Trap, match="bits 46-48 must be 0b001, got 0b000; with check=shipped"):
        tc.run(body, image, out, *words)
    report = tc.run(body, image, out, *words, check="shipped")
    expected = tc.product(a[:, :16], b[:, :16])
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), expected)
    assert [warning.category for warning in report.warnings] == ["descriptor-version"]


@pytest.mark.parametrize(("negate_a", "negate_b", "sign"), [(1, 0, -1), (0, 1, -1), (1, 1, 1)])
def test_negate_bits_change_the_sign_of_the_product(tc, negate_a, negate_b, sign):
    a, b, image, adesc, bdesc, word = tc.accumulating_case()
    load, out = tc.dump_d(128, 32)
    word |= negate_a << 13 | negate_b << 14
    body = tc.FALSE + tc.mma("f16") + tc.DONE + load
    tc.run(body, image, out, adesc, bdesc, word)
    expected = sign * tc.product(a[:, :16], b[:, :16])
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), expected)


def test_scale_input_d_divides_the_accumulator_by_a_power_of_two(tc):
    a, b, image, *words = tc.accumulating_case()
    load, out = tc.dump_d(128, 32)
    scaled = tc.mma("f16").replace("%p3;", "%p3, 3;")
    body = tc.FALSE + tc.mma("f16") + tc.TRUE + scaled + tc.DONE + load
    tc.run(body, image, out, *words)
    once = tc.product(a[:, :16], b[:, :16])
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), once / 8 + once)


def test_disabled_lanes_keep_their_old_values(tc):
    a, b, image, *words = tc.accumulating_case()
    load, out = tc.dump_d(128, 32)
    lanes = "mov.u32 %r20, 0x80000001; mov.u32 %r21, 0; mov.u32 %r22, 2; mov.u32 %r23, -1;\n"
    partial = tc.mma("f16", extra="{%r20, %r21, %r22, %r23}, ")
    body = tc.FALSE + tc.mma("f16") + lanes + tc.TRUE + partial + tc.COMMIT
    tc.run(body + tc.WAIT + load, image, out, *words)
    once = tc.product(a[:, :16], b[:, :16])
    twice = 2 * once
    for lane in (0, 31, 65, *range(96, 128)):
        twice[lane] = once[lane]
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), twice)


def test_an_f16_accumulator_rounds_every_operation_and_sits_in_the_low_half(tc):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((128, 16)).astype(np.float16)
    b = rng.standard_normal((32, 16)).astype(np.float16)
    image = bytearray(24576)
    words = (
        tc.place_operand(image, a, swizzle.B32, False, 0),
        tc.place_operand(image, b, swizzle.B32, False, 16384),
        tc.instruction_word("f16", "f16", "f16", 128, 32),
    )
    load, out = tc.dump_d(128, 32)
    body = tc.FALSE + tc.mma("f16") + tc.TRUE + tc.mma("f16") + tc.DONE + load
    tc.run(body, image, out, *words)
    got = tc.read_d(out, 128, 32).astype(np.uint16).view(np.float16).astype(np.float64)
    once = tc.product(a, b).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(got, once + tc.product(a, b), rtol=2e-3, atol=4e-3)


@pytest.mark.parametrize("m", [128, 64])
@pytest.mark.parametrize(("kind", "name"), [("f16", "bf16"), ("tf32", "tf32")])
def test_operand_a_may_come_from_tensor_memory(tc, kind, name, m):
    k = 8 if kind == "tf32" else 16
    rng = np.random.default_rng(11)
    a, b = tc.random_matrix(rng, m, k, name), tc.random_matrix(rng, 64, k, name)
    image = bytearray(12288)
    image[: 32 * m] = a.tobytes()
    bdesc = tc.place_operand(image, b, swizzle.NONE, False, 8192)
    load, out = tc.dump_d(m, 64)
    row = (
        "mov.u32 %r16, %r0;\n"
        if m == 128
        else (
            "shr.u32 %r16, %r0, 5; shl.b32 %r16, %r16, 4; and.b32 %r18, %r0, 15;"
            "or.b32 %r16, %r16, %r18;\n"
        )
    )
    row += "shl.b32 %r16, %r16, 5;\n add.u32 %r16, %r2, %r16;\n"
    row += "".join(f"ld.shared.u32 %v{i}, [%r16+{4 * i}];\n" for i in range(8))
    body = tc.store_fragment(row, 8) + "add.u32 %r17, %r12, 256;\n" + tc.FALSE
    body += tc.mma(kind, "[%r17]") + tc.DONE + load
    tc.run(body, image, out, 0, bdesc, tc.instruction_word(name, name, "f32", m, 64))
    np.testing.assert_array_equal(tc.read_d(out, m, 64).view(np.float32), tc.product(a, b))


def replacing_a(tc, thread: int, seed: int):
    """A product of A in columns 256 and up, and another by a thread whose sums go there."""
    rng = np.random.default_rng(12)
    a, b = tc.random_matrix(rng, 128, 16, "bf16"), tc.random_matrix(rng, 64, 16, "bf16")
    image = bytearray(12288)
    image[:4096] = a.tobytes()
    adesc = tc.place_operand(image, a, swizzle.NONE, False, 4096)
    bdesc = tc.place_operand(image, b, swizzle.NONE, False, 8192)
    load, out = tc.dump_d(128, 64)
    row = "shl.b32 %r16, %r0, 5; add.u32 %r16, %r2, %r16;\n"
    row += "".join(f"ld.shared.u32 %v{i}, [%r16+{4 * i}];\n" for i in range(8))
    second = tc.mma("f16").replace("[%r12]", "[%r17]").replace("%p0", "%p5")
    body = tc.store_fragment(row, 8) + "add.u32 %r17, %r12, 256;\n" + tc.FALSE
    body += f"setp.eq.u32 %p5, %r0, {thread};\n" + tc.mma("f16", "[%r17]") + second + tc.DONE
    word = tc.instruction_word("bf16", "bf16", "f32", 128, 64)
    report = tc.run(body + load, image, out, adesc, bdesc, word, seed=seed)
    return tc.read_d(out, 128, 64).view(np.float32), tc.product(a, b), report


@pytest.mark.parametrize("seed", range(4))
def test_sums_may_replace_operand_a_of_an_earlier_product_of_the_thread(tc, seed):
    """CUTLASS's attention relies on the order of issue, which the ISA does not list"""
    got, wanted, report = replacing_a(tc, 0, seed)
    np.testing.assert_array_equal(got, wanted)
    assert {each.category for each in report.warnings} == {"unlisted-order"}


def test_sums_of_another_warp_may_not(tc):
    with pytest.raises(Trap, match=r"missing-wait: .* is not ordered behind the tcgen05\.mma"):
        replacing_a(tc, 32, 0)


def test_a_descriptor_may_be_a_register_plus_a_constant(tc):
    """`%rd3+2`, as LLVM prints it and ptxas adds it up"""
    a, b, image, adesc, bdesc, idesc = tc.accumulating_case()
    text = tc.FALSE + tc.mma("f16").replace("%rd3", "%rd3+2")
    columns, out = tc.dump_d(128, 32)
    tc.run(text + tc.DONE + columns, image, out, adesc, bdesc, idesc)
    expected = a[:, :16].astype(np.float32) @ b[:, 16:32].astype(np.float32).T
    np.testing.assert_array_equal(tc.read_d(out, 128, 32).view(np.float32), expected)

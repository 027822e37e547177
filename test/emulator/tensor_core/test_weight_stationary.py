"""tcgen05.mma.ws: shapes M = 32, 64 and 128 and where D lies (PTX ISA §9.7.16.10.5, layouts D,
E and G)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

ATOM = swizzle.B128


def stationary(tc, kind: str, **options) -> str:
    return tc.mma(kind, **options).replace("tcgen05.mma.", "tcgen05.mma.ws.")


def place_of(m: int, n: int, row: int, column: int) -> tuple[int, int]:
    """Lane and tensor memory column of an element of D."""
    parts = 128 // m
    part, inside = divmod(column, n // parts)
    return row + m * part, inside


@pytest.mark.parametrize("collector", ["", ".collector::b2::fill"])
@pytest.mark.parametrize("m", [32, 64, 128])
@pytest.mark.parametrize("n", [64, 128])
def test_d_lies_in_as_many_lane_groups_as_m_leaves_free(tc, m, n, collector):
    rng = np.random.default_rng(m + n)
    a, b = tc.random_matrix(rng, m, 16, "bf16"), tc.random_matrix(rng, n, 16, "bf16")
    image = bytearray(49152)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    idesc = tc.instruction_word("bf16", "bf16", "f32", m, n)
    columns = n * m // 128
    out = np.zeros(columns * 128, np.uint32)
    first = stationary(tc, "f16").replace("kind::f16", f"kind::f16{collector}")
    first = first.replace("%p3;", "%p3, 0;")
    body = tc.FALSE + first + tc.TRUE + stationary(tc, "f16") + tc.DONE
    body += tc.dump("32x32b.x8", 8, columns // 8, 8)
    tc.run(body, image, out, adesc, bdesc, idesc)
    words = out.reshape(-1, 8, 128).view(np.float32)
    wanted = 2 * tc.product(a, b)
    for row in range(m):
        for column in range(n):
            lane, at = place_of(m, n, row, column)
            assert words[at // 8, at % 8, lane] == wanted[row, column], (row, column)


def test_integers_in_tensor_memory_are_an_operand_a_of_128_rows(tc):
    rng = np.random.default_rng(7)
    b = rng.integers(-128, 128, (64, 32)).astype(np.int8)
    image = bytearray(49152)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    values = "".join(f"mad.lo.u32 %v{i}, %r0, 0x01030507, {i * 0x11};\n" for i in range(8))
    body = tc.store_fragment(values, 8) + tc.FALSE + stationary(tc, "i8", a="[%r12+256]")
    out = np.zeros(64 * 128, np.uint32)
    idesc = 2 << 4 | 1 << 7 | 1 << 10 | 64 >> 3 << 17 | 128 >> 4 << 24
    tc.run(body + tc.DONE + tc.dump("32x32b.x8", 8, 8, 8), image, out, 0, bdesc, idesc)
    threads, registers = np.arange(128)[:, None], np.arange(8)[None, :]
    words = (threads * 0x01030507 + registers * 0x11).astype(np.uint32)
    wanted = words.view(np.int8).astype(np.int64) @ b.T.astype(np.int64)
    got = out.reshape(-1, 8, 128).view(np.int32).transpose(2, 0, 1).reshape(128, 64)
    assert np.array_equal(got, wanted)


def mask_word(starts, first_zero, zero: int, used: int) -> int:
    """A zero-column mask descriptor of runs of ``zero`` and of ``used`` columns."""
    word = 1 << 39 | zero - 1 << 40 | used - 1 << 48
    for group, (start, zero_comes) in enumerate(zip(starts, first_zero, strict=True)):
        word |= start << 8 * group | zero_comes << 32 + group
    return word


MASKS = [
    (128, mask_word([0], [0], 3, 4), ["0000111000011100001110000111"]),
    (64, mask_word([0, 0], [1, 0], 3, 4), ["111000011100", "000011100001"]),
    (32, mask_word([0, 1, 2, 1], [1, 1, 0, 0], 3, 4),
     ["1110000111", "1100001110", "0011100001", "0001110000"]),
    (64, 3 << 40 | 2 << 48, ["0" * 32, "0" * 32]),
]  # fmt: skip
"""Shape, descriptor and the first bits of each group's mask: the examples of §9.7.16.4.3."""


@pytest.mark.parametrize(("m", "mask", "bits"), MASKS)
def test_columns_of_b_that_the_mask_names_count_as_zero(tc, m, mask, bits):
    rng = np.random.default_rng(m)
    a, b = tc.random_matrix(rng, m, 16, "bf16"), tc.random_matrix(rng, 64, 16, "bf16")
    image = bytearray(49152)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    columns = 64 * m // 128
    out = np.zeros(columns * 128, np.uint32)
    body = tc.FALSE + stationary(tc, "f16").replace("%p3;", f"%p3, {mask};") + tc.DONE
    body += tc.dump("32x32b.x8", 8, columns // 8, 8)
    word = tc.instruction_word("bf16", "bf16", "f32", m, 64)
    tc.run(body, image, out, adesc, bdesc, word)
    words = out.reshape(-1, 8, 128).view(np.float32)
    wanted = tc.product(a, b)
    for part, group in enumerate(bits):
        for at, bit in enumerate(group):
            got = words[at // 8, at % 8, m * part : m * part + m]
            full = wanted[:, part * columns + at]
            assert np.array_equal(got, 0 * full if bit == "1" else full), (part, at)


@pytest.mark.parametrize(
    ("m", "shift", "most"), [(128, 8, 1), (64, 2, 2), (32, 16, 3), (64, 32, 3)]
)
def test_the_columns_of_b_begin_behind_the_shift(tc, m, shift, most):
    """§9.7.16.4.3, example 4: with a shift of 2, columns 2 to N + 1 are used"""
    rng = np.random.default_rng(shift)
    a, b = tc.random_matrix(rng, m, 16, "bf16"), tc.random_matrix(rng, 64 + 32, 16, "bf16")
    image = bytearray(49152)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    columns = 64 * m // 128
    out = np.zeros(columns * 128, np.uint32)
    body = tc.FALSE + stationary(tc, "f16").replace("%p3;", f"%p3, {shift << 56};") + tc.DONE
    body += tc.dump("32x32b.x8", 8, columns // 8, 8)
    word = tc.instruction_word("bf16", "bf16", "f32", m, 64) | most << 30
    tc.run(body, image, out, adesc, bdesc, word)
    words = out.reshape(-1, 8, 128).view(np.float32)
    wanted = tc.product(a, b[shift : shift + 64])
    for part in range(128 // m):
        got = words[:, :, m * part : m * part + m].reshape(columns, m).T
        assert np.array_equal(got, wanted[:, part * columns : part * columns + columns])


REFUSALS = [
    ("M must be 32, 64 or 128, got 16", 16, 64, ""),
    ("N must be 64, 128 or 256, got 32", 64, 32, ""),
    ("a column shift of at most 0 goes with M=64", 64, 64, f", {2 << 56}"),
    ("a column shift of at most 8 goes with M=64", 64 | 1 << 30, 64, f", {9 << 56}"),
    ("a column shift of at most 16 goes with M=32", 32 | 3 << 30, 64, f", {17 << 56}"),
    ("start count 3 beyond the first span of group 1", 64, 64, f", {1 << 39 | 3 << 8 | 2 << 48}"),
    ("bits 36-38 and 62-63 must be zero", 64, 64, f", {1 << 37}"),
]


@pytest.mark.parametrize("message, m, n, more", REFUSALS)
def test_other_forms_of_ws_are_refused(tc, message, m, n, more):
    body = stationary(tc, "f16").replace("%p3;", f"%p3{more};")
    word = tc.instruction_word("bf16", "bf16", "f32", m & 0xFF, n) | m & 3 << 30
    adesc = tc.descriptor(0, 16, 1024, ATOM)
    trap = tc.refused(tc.FALSE + body + tc.DONE, bytes(32768), (adesc, adesc, word))
    assert message in str(trap)


@pytest.mark.parametrize("m", [32, 64])
def test_every_group_of_lanes_multiplies_its_own_copy_of_a(tc, m):
    """Operand A in tensor memory: the lanes that hold some columns of D hold the rows of A too"""
    rng = np.random.default_rng(m)
    b = tc.random_matrix(rng, 128, 16, "bf16")
    image = bytearray(49152)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    load = "mad.wide.u32 %rd9, %r0, 32, %rd0;\n"
    values = load + "".join(f"ld.global.b32 %v{i}, [%rd9+{4 * i}];\n" for i in range(8))
    a = tc.random_matrix(rng, 128, 16, "bf16")
    image[:4096] = a.tobytes()
    idesc = tc.instruction_word("bf16", "bf16", "f32", m, 128)
    out = np.zeros(m * 128, np.uint32)
    body = tc.store_fragment(values, 8) + tc.FALSE + stationary(tc, "f16", a="[%r12+256]")
    tc.run(body + tc.DONE + tc.dump("32x32b.x8", 8, m // 8, 8), image, out, 0, bdesc, idesc)
    words = out.reshape(-1, 8, 128).view(np.float32)
    for part in range(128 // m):
        lanes = slice(part * m, part * m + m)
        wanted = tc.product(a[lanes], b[part * m : part * m + m])
        got = words[:, :, lanes].reshape(-1, m)
        assert np.array_equal(got.T, wanted), part


def test_a_pair_has_no_ws(tc):
    body = stationary(tc, "f16").replace("cta_group::1", "cta_group::2")
    trap = tc.refused(tc.FALSE + body)
    assert trap.category == "unmodelled" and "9.7.16" in str(trap)

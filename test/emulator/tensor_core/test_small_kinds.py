"""tcgen05.mma kinds f8f6f4 and i8 (PTX ISA §9.7.16.10, instruction descriptor §9.7.16.4.2)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
NUMPY = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
         "u8": np.uint8, "s8": np.int8}  # fmt: skip
FIELDS = {"e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1)}


def value_of(code: int, name: str) -> float:
    """A number below eight bits from its fields: sign, exponent with bias, mantissa"""
    exponent_bits, mantissa_bits = FIELDS[name]
    bias = (1 << exponent_bits - 1) - 1
    mantissa, exponent = code % (1 << mantissa_bits), (code >> mantissa_bits) % (1 << exponent_bits)
    sign = -1 if code >> exponent_bits + mantissa_bits else 1
    if exponent == 0:
        return sign * mantissa / (1 << mantissa_bits) * 2.0 ** (1 - bias)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def padded(codes: np.ndarray, bits: int) -> np.ndarray:
    """Bytes of 16 codes each in 16 bytes, packed at the front; the padding is 0xEE"""
    rows = np.full(codes.shape, 0xEE, np.uint8)
    for r in range(len(codes)):
        for group in range(0, codes.shape[1], 16):
            packed = sum(int(codes[r, group + i]) << bits * i for i in range(16))
            raw = packed.to_bytes(2 * bits, "little")
            rows[r, group : group + 2 * bits] = list(raw)
    return rows


def operand(rng, rows: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(what lies in shared memory, the numbers) of a random [rows, 32] matrix"""
    if name in FIELDS:
        bits = 1 + sum(FIELDS[name])
        codes = rng.integers(0, 1 << bits, (rows, 32))
        numbers = [[value_of(int(code), name) for code in row] for row in codes]
        return padded(codes, bits), np.array(numbers)
    if name in ("u8", "s8"):
        matrix = rng.integers(0, 256, (rows, 32), np.uint8).view(NUMPY[name])
    else:
        matrix = (rng.integers(-8, 9, (rows, 32)) / 2).astype(NUMPY[name])
    return matrix, matrix.astype(np.float64)


def word(a: str, b: str, d: int, m: int, n: int, extra: int = 0) -> int:
    return d << 4 | CODES[a] << 7 | CODES[b] << 10 | n >> 3 << 17 | m >> 4 << 24 | extra


def case(tc, a: str, b: str, m: int, n: int, layouts):
    rng, image = np.random.default_rng(m + n), bytearray(b"\x11" * 32768)
    (left, x), (right, y) = operand(rng, m, a), operand(rng, n, b)
    descriptors = [tc.place_operand(image, left, *layouts[0], 0),
                   tc.place_operand(image, right, *layouts[1], 16384)]  # fmt: skip
    return image, descriptors, x @ y.T


K128, K64, K32, KN = ((mode, False) for mode in (swizzle.B128, swizzle.B64, swizzle.B32,
                                                 swizzle.NONE))  # fmt: skip
CASES = [
    ("e4m3", "e5m2", 128, 64, K32, K128), ("e5m2", "e4m3", 64, 8, K128, KN),
    ("e4m3", "e4m3", 128, 32, (swizzle.B128, True), (swizzle.B32, True)),
    ("e2m1", "e4m3", 128, 16, K128, K64), ("e3m2", "e2m3", 64, 24, K32, KN),
    ("e2m3", "e2m1", 128, 40, KN, K128),
]  # fmt: skip


@pytest.mark.parametrize("d", ["f16", "f32"])
@pytest.mark.parametrize(("a", "b", "m", "n", "la", "lb"), CASES,
                         ids=["-".join(map(str, c[:4])) for c in CASES])  # fmt: skip
def test_products_of_eight_six_and_four_bit_floats(tc, a, b, m, n, la, lb, d):
    image, descriptors, wanted = case(tc, a, b, m, n, (la, lb))
    load, out = tc.dump_d(m, n)
    idesc = word(a, b, int(d == "f32"), m, n, la[1] << 15 | lb[1] << 16)
    tc.run(tc.FALSE + tc.mma("f8f6f4") + tc.DONE + load, image, out, *descriptors, idesc)
    got = tc.read_d(out, m, n)
    if d == "f16":
        values, expected = got.astype(np.uint16).view(np.float16), wanted.astype(np.float16)
    else:
        values, expected = got.view(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(("a", "b", "m", "n"), [("u8", "s8", 128, 32), ("s8", "u8", 64, 48),
                                                ("u8", "u8", 128, 24)])  # fmt: skip
def test_integer_products_are_exact_and_accumulate(tc, a, b, m, n):
    image, descriptors, wanted = case(tc, a, b, m, n, (K32, K128))
    load, out = tc.dump_d(m, n)
    body = tc.FALSE + tc.mma("i8") + tc.TRUE + tc.mma("i8") * 2 + tc.DONE + load
    tc.run(body, image, out, *descriptors, word(a, b, 2, m, n))
    np.testing.assert_array_equal(tc.read_d(out, m, n).view(np.int32), 3 * wanted)


@pytest.mark.parametrize(("saturate", "wanted"), [(0, 0x7FFFFF00 + 32 * 255 * 255 - (1 << 32)),
                                                  (1, 0x7FFFFFFF)])  # fmt: skip
def test_the_saturate_bit_clamps_integer_sums(tc, saturate, wanted):
    """D is stored by the threads first, near the largest number"""
    image = bytearray(b"\xff" * 32768)
    ones = np.full((128, 32), 255, np.uint8)
    descriptors = [tc.place_operand(image, ones, *K32, 0),
                   tc.place_operand(image, ones[:8], *K32, 16384)]  # fmt: skip
    values = "".join(f"mov.b32 %v{i}, 0x7FFFFF00;\n" for i in range(8))
    body = tc.store_fragment(values, 8) + "add.u32 %r12, %r12, 256;\n" + tc.TRUE + tc.mma("i8")
    load, out = tc.dump_d(128, 8)
    body += tc.DONE + load + "sub.u32 %r12, %r12, 256;\n"
    tc.run(body, image, out, *descriptors, word("u8", "u8", 2, 128, 8, saturate << 3))
    assert set(tc.read_d(out, 128, 8).view(np.int32).ravel().tolist()) == {wanted}


REFUSALS = [
    ("i8", word("u8", "u8", 1, 128, 32), "descriptor", "type of D"),
    ("i8", word("u8", "u8", 2, 128, 40), "descriptor", "N must be a multiple of 16"),
    ("i8", word("u8", "s8", 2, 128, 32, 1 << 13), "descriptor", "negation of an integer"),
    ("f8f6f4", word("e4m3", "e4m3", 1, 128, 32, 1 << 3), "descriptor", "saturate"),
    ("f8f6f4", word("e4m3", "e4m3", 1, 128, 8, 1 << 16), "descriptor", "multiple of 16"),
    ("f8f6f4", word("e2m1", "e4m3", 1, 128, 16, 1 << 15), "descriptor", "must be K-major"),
    ("f8f6f4", 2 << 7 | word("e4m3", "e4m3", 1, 128, 16), "descriptor", "type of A"),
]


@pytest.mark.parametrize(("kind", "idesc", "category", "part"), REFUSALS)
def test_illegal_instruction_descriptors_are_refused(tc, kind, idesc, category, part):
    trap = tc.refused(tc.FALSE + tc.mma(kind) + tc.DONE, b"", (0, 0, idesc))
    assert (trap.category, part in str(trap)) == (category, True), str(trap)


COPIES = [("e2m1", 4, "b4x16_p64"), ("e3m2", 6, "b6x16_p32"), ("e2m3", 6, "b6x16_p32")]


@pytest.mark.parametrize(("name", "bits", "source"), COPIES)
def test_a_copy_expands_small_floats_to_bytes_which_operand_a_takes(tc, name, bits, source):
    image, (adesc, bdesc), wanted = case(tc, name, "e4m3", 128, 16, (KN, K128))
    load, out = tc.dump_d(128, 16)
    copy = "@%p0 tcgen05.cp.cta_group::1.128x256b.b8x16." + source + " [%r12+256], %rd2;\n"
    body = copy + tc.FALSE + tc.mma("f8f6f4", a="[%r12+256]") + tc.DONE + load
    tc.run(body, image, out, adesc, bdesc, word(name, "e4m3", 1, 128, 16))
    np.testing.assert_array_equal(tc.read_d(out, 128, 16).view(np.float32), wanted)


@pytest.mark.parametrize(("name", "bits", "source"), COPIES)
def test_a_small_float_lies_in_the_middle_or_at_the_low_end_of_its_byte(tc, name, bits, source):
    codes = np.arange(128 * 32).reshape(128, 32) * 7 % (1 << bits)
    image = bytearray(32768)
    adesc = tc.place_operand(image, padded(codes, bits), *KN, 0)
    copy = "@%p0 tcgen05.cp.cta_group::1.128x256b.b8x16." + source + " [%r12], %rd2;\n"
    out = np.zeros(8 * 128, np.uint32)
    tc.run(copy + tc.DONE + tc.dump("32x32b.x8", 8, 1, 0), image, out, adesc)
    got = np.ascontiguousarray(out.reshape(8, 128).T).view(np.uint8).reshape(128, 32)
    np.testing.assert_array_equal(got, codes << (2 if bits == 4 else 0))


def test_a_copy_names_both_formats_or_none(tc):
    trap = tc.refused("@%p0 tcgen05.cp.cta_group::1.128x256b.b8x16 [%r12], %rd2;\n")
    assert (trap.category, ".b8x16 alone" in str(trap)) == ("unmodelled", True)

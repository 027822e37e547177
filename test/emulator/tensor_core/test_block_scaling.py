"""Block-scaled tcgen05.mma with scale factors that tcgen05.cp brings to tensor memory.

Source: PTX ISA §9.7.16.10.7 (block scaling), §9.7.16.4.2 (instruction descriptor), §9.7.16.9.2.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
M, FACTORS_A, FACTORS_B = 128, 40960, 43008
"""Rows of A; where the blocks of scale factors lie in the image."""
COPIES = """@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+256], %rd10;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+260], %rd11;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+264], %rd12;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+268], %rd13;
"""


def mma(kind: str, vector: str) -> str:
    return (f"@%p0 tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector} [%r12], %rd2, %rd3, "
            f"%r11, [%r12+256], [%r12+264], %p3;\n")  # fmt: skip


def place_factors(image: bytearray, codes: np.ndarray, base: int) -> None:
    """The 512-byte blocks of 128 rows: row m of a block at (m % 32) * 16 + m / 32 * 4"""
    for m in range(len(codes)):
        at = base + m // 128 * 512 + m % 32 * 16 + m % 128 // 32 * 4
        image[at : at + 4] = codes[m].tobytes()


def copies(tc) -> str:
    text = ""
    for register, at in ((10, FACTORS_A), (11, FACTORS_A + 512), (12, FACTORS_B),
                         (13, FACTORS_B + 512)):  # fmt: skip
        word = tc.descriptor(at, 0, 128, swizzle.NONE)
        text += f"mov.u64 %rd{register}, {word};\n"
    return text + COPIES


def scale(code: int, name: str) -> float:
    if name == "ue8m0":
        return 2.0 ** (code - 127)
    return float(np.array(code, np.uint8).view(ml_dtypes.float8_e4m3fn))


def four_bit_operand(rng, rows: int) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(0, 16, (rows, 64), np.uint8)
    numbers = np.array([[FP4[c & 7] * (-1 if c & 8 else 1) for c in row] for row in codes])
    return codes[:, ::2] | codes[:, 1::2] << 4, numbers


def eight_bit_operand(rng, rows: int) -> tuple[np.ndarray, np.ndarray]:
    matrix = (rng.integers(-8, 9, (rows, 32)) / 2).astype(ml_dtypes.float8_e4m3fn)
    return matrix, matrix.astype(np.float64)


def codes_of(rng, rows: int, name: str) -> np.ndarray:
    low, high = (124, 131) if name == "ue8m0" else (0x28, 0x48)
    return rng.integers(low, high, (rows, 4), np.uint8)


def wanted(x, y, sfa, sfb, form) -> np.ndarray:
    """D by its definition; form: (scale type, blocks, id of A, id of B)"""
    name, blocks, first_a, first_b = form
    d, each = np.zeros((len(x), len(y))), x.shape[1] // blocks
    for block in range(blocks):
        k = slice(block * each, block * each + each)
        left = np.array([scale(int(c), name) for c in sfa[: len(x), first_a + block]])
        right = np.array([scale(int(c), name) for c in sfb[: len(y), first_b + block]])
        d += (x[:, k] @ y[:, k].T) * left[:, None] * right[None, :]
    return d.astype(np.float32)


CASES = [
    ("mxf8f6f4", "", "ue8m0", 1, 0, 0, 64), ("mxf8f6f4", ".scale_vec::1X", "ue8m0", 1, 3, 1, 128),
    ("mxf8f6f4", ".block32", "ue8m0", 1, 2, 0, 256), ("mxf4", "", "ue8m0", 2, 0, 2, 40),
    ("mxf4", ".scale_vec::2X", "ue8m0", 2, 2, 0, 192),
    ("mxf4nvf4", ".scale_vec::2X", "ue8m0", 2, 2, 2, 8),
    ("mxf4nvf4", ".scale_vec::4X", "ue4m3", 4, 0, 0, 136),
    ("mxf4nvf4", ".block16", "ue8m0", 4, 0, 0, 64),
]  # fmt: skip


def word(kind: str, scale_type: str, ids: tuple[int, int], n: int, rows: int = 1) -> int:
    types = 0 if kind == "mxf8f6f4" else 1 << 7 | 1 << 10
    fields = n >> 3 << 17 | rows << 27 | ids[0] << 29 | ids[1] << 4
    return types | fields | int(scale_type == "ue8m0") << 23


def case(tc, kind: str, scale_type: str, n: int):
    rng = np.random.default_rng(n)
    make = eight_bit_operand if kind == "mxf8f6f4" else four_bit_operand
    (left, x), (right, y) = make(rng, M), make(rng, n)
    sfa, sfb = codes_of(rng, 256, scale_type), codes_of(rng, 256, scale_type)
    image = bytearray(b"\x7f" * 45056)
    adesc = tc.place_operand(image, left, swizzle.B128, False, 0)
    bdesc = tc.place_operand(image, right, swizzle.B32, False, 20480)
    place_factors(image, sfa, FACTORS_A)
    place_factors(image, sfb, FACTORS_B)
    return image, adesc, bdesc, (x, y, sfa, sfb)


@pytest.mark.parametrize(("kind", "vector", "type_", "blocks", "a_id", "b_id", "n"), CASES,
                         ids=["{}{}-{}-ids{}{}{}-n{}".format(*c) for c in CASES])  # fmt: skip
def test_every_block_is_scaled_by_its_own_factors(tc, kind, vector, type_, blocks, a_id, b_id, n):
    image, adesc, bdesc, numbers = case(tc, kind, type_, n)
    load, out = tc.dump_d(M, n)
    body = copies(tc) + tc.FALSE + mma(kind, vector) + tc.DONE + load
    tc.run(body, image, out, adesc, bdesc, word(kind, type_, (a_id, b_id), n))
    expected = wanted(*numbers, (type_, blocks, a_id, b_id))
    np.testing.assert_array_equal(tc.read_d(out, M, n).view(np.float32), expected)


SMALL = {"e4m3": (0, 8, ml_dtypes.float8_e4m3fn), "e5m2": (1, 8, ml_dtypes.float8_e5m2),
         "e2m3": (3, 6, ml_dtypes.float6_e2m3fn), "e3m2": (4, 6, ml_dtypes.float6_e3m2fn),
         "e2m1": (5, 4, ml_dtypes.float4_e2m1fn)}  # fmt: skip
"""The code in the instruction descriptor, the bits of an element, and numpy's reading of it."""


def spread_operand(rng, rows: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 32 elements, 16 of them in 16 bytes: packed, low bits first, then a gap of 0xFF"""
    _, bits, dtype = SMALL[name]
    codes = np.arange(1 << bits, dtype=np.uint8)
    numbers = codes.view(dtype).astype(np.float64)
    codes = rng.choice(codes[(abs(numbers) >= 0.25) & (abs(numbers) <= 8)], (rows, 32))
    flags = np.unpackbits(codes.reshape(rows, 2, 16, 1), axis=-1, bitorder="little")
    packed = np.packbits(flags[..., :bits].reshape(rows, 2, -1), axis=-1, bitorder="little")
    places = np.full((rows, 2, 16), 0xFF, np.uint8)
    places[..., : packed.shape[-1]] = packed
    return places.reshape(rows, 32), codes.view(dtype).astype(np.float64)


@pytest.mark.parametrize("a", SMALL)
def test_any_two_small_types_multiply(tc, a):
    load, out = tc.dump_d(M, 16)
    for number, b in enumerate(SMALL):
        image, adesc, bdesc, (_, _, sfa, sfb) = case(tc, "mxf8f6f4", "ue8m0", 16)
        rng = np.random.default_rng(number)
        (left, x), (right, y) = spread_operand(rng, M, a), spread_operand(rng, 16, b)
        adesc = tc.place_operand(image, left, swizzle.B128, False, 0)
        bdesc = tc.place_operand(image, right, swizzle.B32, False, 20480)
        types = SMALL[a][0] << 7 | SMALL[b][0] << 10
        body = copies(tc) + tc.FALSE + mma("mxf8f6f4", "") + tc.DONE + load
        tc.run(body, image, out, adesc, bdesc, word("mxf8f6f4", "ue8m0", (1, 2), 16) | types)
        expected = wanted(x, y, sfa, sfb, ("ue8m0", 1, 1, 2))
        np.testing.assert_array_equal(tc.read_d(out, M, 16).view(np.float32), expected, err_msg=b)


@pytest.mark.parametrize("seed", range(4))
def test_two_steps_with_their_own_factors_accumulate(tc, seed):
    """One word of factors serves four steps: the second one takes byte 1"""
    image, adesc, bdesc, numbers = case(tc, "mxf8f6f4", "ue8m0", 64)
    load, out = tc.dump_d(M, 64)
    first, second = (word("mxf8f6f4", "ue8m0", (i, i), 64) for i in (0, 1))
    step = mma("mxf8f6f4", "")
    body = copies(tc) + tc.FALSE + step + f"mov.b32 %r11, {second};\n" + tc.TRUE + step
    tc.run(body + tc.DONE + load, image, out, adesc, bdesc, first, seed=seed)
    expected = sum(wanted(*numbers, ("ue8m0", 1, i, i)) for i in (0, 1))
    np.testing.assert_array_equal(tc.read_d(out, M, 64).view(np.float32), expected)


WORD = word("mxf8f6f4", "ue8m0", (0, 0), 64)
OTHER_FACTORS = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+256], %rd11;\n"
"""Replaces the factors of A that a product may still be reading."""


@pytest.mark.parametrize("seed", range(6))
def test_a_copy_behind_a_product_of_the_same_thread_leaves_it_its_factors(tc, seed):
    image, adesc, bdesc, (x, y, sfa, sfb) = case(tc, "mxf8f6f4", "ue8m0", 64)
    load, out = tc.dump_d(M, 64)
    step = mma("mxf8f6f4", "")
    body = copies(tc) + tc.FALSE + step + "@%p0 " + OTHER_FACTORS + tc.TRUE + step
    report = tc.run(body + tc.DONE + load, image, out, adesc, bdesc, WORD, seed=seed)
    assert {each.category for each in report.warnings} <= {"unlisted-order"}
    expected = sum(wanted(x, y, each, sfb, ("ue8m0", 1, 0, 0)) for each in (sfa[:M], sfa[M:]))
    np.testing.assert_array_equal(tc.read_d(out, M, 64).view(np.float32), expected)


def test_a_copy_of_another_warp_must_wait_for_the_product(tc):
    image, adesc, bdesc, _ = case(tc, "mxf8f6f4", "ue8m0", 64)
    other = "bar.sync 0; setp.eq.u32 %p4, %r0, 32;\n@%p4 " + OTHER_FACTORS
    body = copies(tc) + tc.FALSE + mma("mxf8f6f4", "") + other + tc.DONE
    trap = tc.refused(body, image, (adesc, bdesc, WORD))
    assert (trap.category, "tcgen05.commit it" in str(trap)) == ("missing-wait", True), str(trap)


@pytest.mark.parametrize(("kind", "rows", "scale_type", "ids", "known"), [
    ("mxf8f6f4", 1, "ue8m0", (0, 0), 0x08A00000), ("mxf8f6f4", 1, "ue8m0", (1, 1), 0x28A00010),
    ("mxf4nvf4", 1, "ue4m3", (0, 0), 0x08200480), ("mxf4", 1, "ue8m0", (2, 2), 0x48A004A0),
])  # fmt: skip
def test_the_words_of_these_tests_are_the_published_ones(kind, rows, scale_type, ids, known):
    assert word(kind, scale_type, ids, 128, rows) == known


REFUSALS = [
    ("mxf8f6f4", "", WORD & ~(1 << 23), "descriptor", "scale type"),
    ("mxf8f6f4", "", WORD & ~(3 << 27), "descriptor", "M must be 128"),
    ("mxf8f6f4", "", WORD | 2 << 7, "descriptor", "type of A"),
    ("mxf8f6f4", "", WORD | 1 << 25, "descriptor", "bit 24"),
    ("mxf4", "", word("mxf4", "ue8m0", (1, 0), 64), "descriptor", "scale factor id of A"),
    ("mxf4", "", word("mxf4", "ue8m0", (0, 0), 64) | 1 << 31, "descriptor", "sm_103a"),
    ("mxf4", ".scale_vec::4X", 0, "unmodelled", "scale_vec::4X"),
    ("mxf4nvf4", "", 0, "unmodelled", "scale_vec"),
]


@pytest.mark.parametrize(("kind", "vector", "idesc", "category", "part"), REFUSALS)
def test_illegal_scalings_are_refused(tc, kind, vector, idesc, category, part):
    trap = tc.refused(tc.FALSE + mma(kind, vector) + tc.DONE, b"", (0, 0, idesc))
    assert (trap.category, part in str(trap)) == (category, True), str(trap)


def test_factors_that_no_copy_brought_are_refused(tc):
    image, adesc, bdesc, _ = case(tc, "mxf8f6f4", "ue8m0", 64)
    trap = tc.refused(tc.FALSE + mma("mxf8f6f4", "") + tc.DONE, image, (adesc, bdesc, WORD))
    assert (trap.category, "scale factors of A" in str(trap)) == ("uninitialised-read", True)


def test_factors_must_lie_in_all_four_quarters(tc):
    """Each warp stores its own number into the words of its quarter"""
    image, adesc, bdesc, _ = case(tc, "mxf8f6f4", "ue8m0", 64)
    values = "shr.u32 %r20, %r0, 5; add.u32 %r20, %r20, 120;\n"
    values += "".join(f"mov.b32 %v{i}, %r20;\n" for i in range(8))
    body = tc.store_fragment(values, 8) + tc.FALSE
    body += mma("mxf8f6f4", "").replace("+264", "+260") + tc.DONE
    trap = tc.refused(body, image, (adesc, bdesc, WORD))
    assert (trap.category, "all four 32-lane" in str(trap)) == ("tmem", True), str(trap)


@pytest.mark.parametrize(("kind", "vector", "type_"), [
    ("mxf4", "", "ue8m0"), ("mxf4nvf4", ".block16", "ue4m3"), ("mxf4nvf4", ".block32", "ue8m0"),
])  # fmt: skip
def test_bit_12_of_a_dense_product_of_four_bits_has_no_effect(tc, kind, vector, type_):
    image, adesc, bdesc, numbers = case(tc, kind, type_, 64)
    load, out = tc.dump_d(M, 64)
    body = copies(tc) + tc.FALSE + mma(kind, vector) + tc.DONE + load
    idesc = word(kind, type_, (0, 0), 64) | 1 << 12
    assert not tc.run(body, image, out, adesc, bdesc, idesc).warnings
    expected = wanted(*numbers, (type_, 4 if vector == ".block16" else 2, 0, 0))
    np.testing.assert_array_equal(tc.read_d(out, M, 64).view(np.float32), expected)


@pytest.mark.parametrize(("kind", "bit", "part"), [
    ("mxf4", 3, "the upper bit of the K size (bit 3) must be 0 on this chip, whose K is 64"),
    ("mxf4nvf4", 3, "the upper bit of the K size (bit 3)"),
    ("mxf8f6f4", 3, "the field at bit 3 must be 0"),
    ("mxf4", 24, "bit 24"), ("mxf4", 26, "bit 24"),
])  # fmt: skip
def test_bits_that_select_something_else_are_refused(tc, kind, bit, part):
    vector = ".block16" if kind == "mxf4nvf4" else ""
    idesc = word(kind, "ue8m0", (0, 0), 64) | 1 << bit
    trap = tc.refused(tc.FALSE + mma(kind, vector) + tc.DONE, b"", (0, 0, idesc))
    assert (trap.category, part in str(trap)) == ("descriptor", True), str(trap)


NAN = 0xFF


def padded_case(tc, rows_of_zeros=()):
    """mxf8f6f4, M=128, N=64: operands that are zero in some rows, and where they lie"""
    image, adesc, bdesc, numbers = case(tc, "mxf8f6f4", "ue8m0", 64)
    zeros = bytearray(image)
    x = numbers[0].astype(ml_dtypes.float8_e4m3fn)
    x[list(rows_of_zeros)] = 0
    tc.place_operand(zeros, x, swizzle.B128, False, 0)
    tail = tc.place_operand(zeros, np.zeros_like(x), swizzle.B128, False, TAIL)
    return zeros, adesc, bdesc, tail, numbers[2:]


TAIL = 24576
"""Where an operand A of zeros lies: the part of a tile behind the end of K."""


def run_with_tail(tc, image, adesc, bdesc, tail, seed=0):
    """A product, then one with an A of zeros and the second byte of all factors"""
    second = word("mxf8f6f4", "ue8m0", (1, 1), 64)
    step, load = mma("mxf8f6f4", ""), tc.dump_d(M, 64)
    more = f"mov.b32 %r11, {second}; mov.b64 %rd2, {tail};\n"
    body = copies(tc) + tc.FALSE + step + more + tc.TRUE + step + tc.DONE + load[0]
    report = tc.run(body, image, load[1], adesc, bdesc, WORD, seed=seed)
    return report, tc.read_d(load[1], M, 64).view(np.float32)


@pytest.mark.parametrize(("side", "rows"), [("A", (5,)), ("A", range(128)), ("B", (7,))])
def test_nan_that_scales_the_zeros_behind_the_end_of_k_is_noted(tc, side, rows):
    """Byte 1 of some rows' factors is NaN, and the second product's A has only zeros"""
    image, adesc, bdesc, tail, (sfa, sfb) = padded_case(tc)
    codes, base = (sfa, FACTORS_A) if side == "A" else (sfb, FACTORS_B)
    codes[list(rows), 1] = NAN
    place_factors(image, codes, base)
    report, d = run_with_tail(tc, image, adesc, bdesc, tail)
    assert np.isnan(d).any()
    named = [each for each in report.warnings if each.category == "nan-scale"]
    assert len(named) == 1 and f"scale factors of {side} are NaN where an operand" in str(named[0])


def test_nan_that_scales_rows_outside_of_the_matrix_is_not(tc):
    """Rows 100 to 127 are padding: zeros, whose sums nobody stores"""
    pad = range(100, 128)
    image, adesc, bdesc, tail, (sfa, _) = padded_case(tc, pad)
    sfa[list(pad)] = NAN
    place_factors(image, sfa, FACTORS_A)
    report, d = run_with_tail(tc, image, adesc, bdesc, tail)
    assert np.isnan(d[100:]).all() and np.isfinite(d[:100]).all() and not report.warnings


def test_nan_among_the_factors_of_live_elements_is_data(tc):
    image, adesc, bdesc, (_, _, sfa, _) = case(tc, "mxf8f6f4", "ue8m0", 64)
    sfa[3] = NAN
    place_factors(image, sfa, FACTORS_A)
    report, d = run_with_tail(tc, image, adesc, bdesc, adesc)
    assert np.isnan(d[3]).all() and not report.warnings


def two_steps(tc, column):
    """Warnings of two products, of which the second names a column of factors of A.

    mxf4nvf4 takes whole words: the second step's factors lie in other columns, which are copied."""
    image, adesc, bdesc, _ = case(tc, "mxf4nvf4", "ue4m3", 64)
    tail = tc.place_operand(image, np.full((M, 32), 0x12, np.uint8), swizzle.B128, False, TAIL)
    step, (load, out) = mma("mxf4nvf4", ".block16"), tc.dump_d(M, 64)
    second = step.replace("[%r12+256]", f"[%r12+{column}]").replace("+264", "+268")
    body = copies(tc) + tc.FALSE + step + f"mov.b64 %rd2, {tail};\n" + tc.TRUE + second
    first = word("mxf4nvf4", "ue4m3", (0, 0), 64)
    report = tc.run(body + tc.DONE + load, image, out, adesc, bdesc, first)
    return [each.category for each in report.warnings]


@pytest.mark.parametrize(("column", "warned"), [(256, ["scale-id"]), (260, [])])
def test_two_steps_with_the_factors_of_one_are_noted(tc, column, warned):
    assert two_steps(tc, column) == warned


@pytest.mark.parametrize("column", [257, 258, 259])
def test_factors_of_128_rows_that_begin_within_those_of_a_copy_are_noted(tc, column):
    assert "scale-columns" in two_steps(tc, column)


FEW = "tcgen05.cp.cta_group::1.32x128b.warpx4"


@pytest.mark.parametrize("used", range(4))
def test_a_factor_that_nobody_wrote_is_refused_where_a_product_uses_it(tc, used):
    """Row 70's factors: bytes 0 and 2 are written, 1 and 3 are not"""
    image, adesc, bdesc, _ = case(tc, "mxf8f6f4", "ue8m0", 64)
    target, at = 50176, 70 % 32 * 16 + 70 // 32 * 4
    fill = f"""
    mul.lo.u32 %r20, %r0, 4; add.u32 %r20, %r20, %r2;
    mov.b32 %r21, 0x7f7f7f7f; setp.eq.u32 %p5, %r0, {at // 4};
    @!%p5 st.shared.b32 [%r20+{target}], %r21;
    @%p5 st.shared.b8 [%r20+{target}], %r21;
    @%p5 st.shared.b8 [%r20+{target + 2}], %r21;
    fence.proxy.async.shared::cta; bar.sync 0;
    mov.u64 %rd10, {tc.descriptor(target, 0, 128, swizzle.NONE)};
    @%p0 {FEW} [%r12+272], %rd10;
    """
    body = copies(tc) + fill + tc.FALSE + mma("mxf8f6f4", "").replace("+256", "+272")
    idesc = word("mxf8f6f4", "ue8m0", (used, 0), 64)
    if used % 2 == 0:
        tc.run(body + tc.DONE, image, np.zeros(4, np.uint32), adesc, bdesc, idesc)
        return
    trap = tc.refused(body + tc.DONE, image, (adesc, bdesc, idesc))
    assert trap.category == "uninitialised-read"
    assert trap.message.startswith(
        f"tcgen05.mma scale factors of A: byte {used} of a word: tensor memory lane 6 column "
    ), trap.message


def test_a_copy_of_bytes_that_nobody_wrote_is_refused_at_once(tc):
    image, adesc, bdesc, _ = case(tc, "mxf8f6f4", "ue8m0", 64)
    source = tc.descriptor(50176, 0, 128, swizzle.NONE)
    body = f"mov.u64 %rd10, {source};\n@%p0 {FEW} [%r12+256], %rd10;\n" + tc.DONE
    trap = tc.refused(body, image, (adesc, bdesc, WORD))
    assert (trap.category, "tcgen05.cp" in trap.message) == ("uninitialised-read", True)

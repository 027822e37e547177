"""tcgen05.shift and `.ashift`: rows of a matrix in tensor memory move down by one.

The shape is `.31x256b` (PTX ISA §9.7.16.2.3, §9.7.16.9.3): 31 lanes of 32 and 8 columns. NVIDIA's
example `1cta_mma_a_from_tmem.py` (CuTe DSL) has what a B200 does: row r becomes row r + 1 of
before, and the last row of each 32 stays.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

COLUMNS = 16
K, N = 8, 32
FENCED = "tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
CLEAR = "tcgen05.wait::st.sync.aligned;\n" + FENCED


def numbered(tc, wait: str = CLEAR) -> str:
    """100 * lane + column in the first columns; %r14 is the warp's place."""
    names = ", ".join(f"%v{i}" for i in range(COLUMNS))
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    body += "".join(f"mad.lo.u32 %v{c}, %r0, 100, {c};\n" for c in range(COLUMNS))
    return body + f"tcgen05.st.sync.aligned.32x32b.x{COLUMNS}.b32 [%r14], {{{names}}};\n" + wait


def shift(lane: int, column: int) -> str:
    place = f"add.u32 %r20, %r12, {(lane << 16) + column};\n"
    return place + "@%p0 tcgen05.shift.cta_group::1.down [%r20];\n"


def moved(words: np.ndarray, lane: int, column: int) -> np.ndarray:
    """[columns, lanes] behind a shift."""
    found = words.copy()
    for row in range(lane, lane + 31):
        found[column : column + 8, row] = words[column : column + 8, row + 1]
    return found


def words_of(tc, body: str, image=b"", *words) -> np.ndarray:
    out = np.zeros(COLUMNS * 128, np.uint32)
    load = tc.dump(f"32x32b.x{COLUMNS}", COLUMNS, 1, 0)
    tc.run(body + load, image, out, *words)
    return out.reshape(COLUMNS, 128)


START = 100 * np.arange(128, dtype=np.uint32) + np.arange(COLUMNS, dtype=np.uint32)[:, None]


@pytest.mark.parametrize(("lane", "column"), [(0, 0), (32, 4), (96, 8)])
def test_31_lanes_take_the_8_columns_of_the_next(tc, lane, column):
    found = words_of(tc, numbered(tc) + shift(lane, column) + tc.DONE)
    assert np.array_equal(found, moved(START, lane, column))


def test_a_copy_of_four_rows_comes_behind_shifts_and_fills_their_last_rows(tc):
    image = bytearray(2048)
    rows = np.arange(32, dtype=np.uint32).reshape(4, 8) + 5000
    for r in range(4):
        for c in range(8):
            at = r * 16 + c % 4 * 4 + c // 4 * 128
            image[at : at + 4] = rows[r, c].tobytes()
    shifts = "".join(shift(lane, 0) for lane in range(0, 128, 32))
    fill = f"add.u32 %r21, %r12, {31 << 16};\n"
    fill += "@%p0 tcgen05.cp.cta_group::1.4x256b [%r21], %rd2;\n"
    found = words_of(
        tc,
        numbered(tc) + shifts + fill + tc.DONE,
        image,
        tc.descriptor(0, 128, 128, swizzle.NONE),
    )
    expected = START
    for lane in range(0, 128, 32):
        expected = moved(expected, lane, 0)
        expected[:8, lane + 31] = rows[lane // 32]
    assert np.array_equal(found, expected)


REFUSALS = {
    "starts at a multiple of 32 lanes": (numbered, shift(16, 0), "tmem", "multiple of 32"),
    "stays in the allocation": (numbered, shift(0, 508), "out-of-bounds", "508..515"),
    "waits for stores": (lambda tc: numbered(tc, FENCED), shift(0, 0), "missing-wait", "wait::st"),
    "waits for other shifts": (numbered, shift(0, 0) + shift(0, 4), "missing-wait", "shift of"),
    "waits for copies": (
        numbered,
        "@%p0 tcgen05.cp.cta_group::1.128x256b [%r12], %rd2;\n" + shift(0, 0),
        "missing-wait",
        "tcgen05.cp of warp",
    ),
    "is waited for by loads": (
        numbered,
        shift(0, 0) + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r14];\n",
        "missing-wait",
        "tcgen05.shift of warp",
    ),
    "is waited for by other copies": (
        numbered,
        shift(0, 0) + "@%p0 tcgen05.cp.cta_group::1.128x256b [%r12], %rd2;\n",
        "missing-wait",
        "tcgen05.shift of warp",
    ),
}


@pytest.mark.parametrize("rule", REFUSALS)
def test_a_shift(tc, rule):
    before, body, category, said = REFUSALS[rule]
    source = tc.descriptor(0, 2048, 128, swizzle.NONE)
    trap = tc.refused(before(tc) + body + tc.DONE, bytes(4096), (source, 0, 0))
    assert (trap.category, said in trap.message) == (category, True), trap.message


# -- .ashift ---------------------------------------------------------------------------------


def a_of(lane: np.ndarray, k: np.ndarray) -> np.ndarray:
    return ((lane * 8 + k) * 7 % 23).astype(np.float32)


def operands(tc) -> tuple[str, bytearray, list[int], np.ndarray]:
    """A[128, 8] as tf32 in columns 256 to 263, B[32, 8] in shared memory."""
    values = "".join(
        f"mad.lo.u32 %v{k}, %r0, 8, {k}; mul.lo.u32 %v{k}, %v{k}, 7; rem.u32 %v{k}, %v{k}, 23;\n"
        f"cvt.rn.f32.u32 %v{k}, %v{k};\n"
        for k in range(K)
    )
    b = tc.random_matrix(np.random.default_rng(3), N, K, "tf32")
    image = bytearray(2048)
    bdesc = tc.place_operand(image, b, swizzle.NONE, False, 0)
    body = tc.store_fragment(values, K) + "add.u32 %r16, %r12, 256;\n" + tc.FALSE
    return body, image, [0, bdesc, tc.instruction_word("tf32", "tf32", "f32", 128, N)], b


def sums(tc, body: str, image, words, seed: int = 0) -> np.ndarray:
    load, out = tc.dump_d(128, N)
    tc.run(body + tc.DONE + load, image, out, *words, seed=seed)
    return tc.read_d(out, 128, N).view(np.float32)


LANE, AT_K = np.indices((128, K))
A = a_of(LANE, AT_K)
SHIFTED = np.where((LANE % 32 == 31), A, a_of(LANE + 1, AT_K))


def test_a_product_with_ashift_takes_a_as_it_is(tc):
    body, image, words, b = operands(tc)
    found = sums(tc, body + tc.mma("tf32.ashift", "[%r16]"), image, words)
    assert np.array_equal(found, tc.product(A, b))


@pytest.mark.parametrize("times", [1, 2])
def test_a_product_behind_ashift_takes_the_rows_shifted(tc, times):
    body, image, words, b = operands(tc)
    body += tc.mma("tf32.ashift", "[%r16]") * times
    found = sums(tc, body + tc.mma("tf32", "[%r16]"), image, words)
    expected = A
    for _ in range(times):
        expected = np.where(LANE % 32 == 31, expected, np.roll(expected, -1, axis=0))
    assert np.array_equal(found, tc.product(expected, b))


@pytest.mark.parametrize("seed", range(4))
def test_shifts_are_executed_between_the_products_around_them(tc, seed):
    """mma -> shift -> mma are pipelined (PTX ISA §9.7.16.6.2)"""
    body, image, words, b = operands(tc)
    body += tc.mma("tf32", "[%r16]") + "".join(shift(lane, 256) for lane in range(0, 128, 32))
    found = sums(tc, body + tc.TRUE + tc.mma("tf32", "[%r16]"), image, words, seed)
    assert np.array_equal(found, tc.product(A, b) + tc.product(SHIFTED, b))


def test_what_ashift_leaves_is_behind_the_products_commit(tc):
    body, image, words, _ = operands(tc)
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r15+256];\n"
    early = tc.refused(body + tc.mma("tf32.ashift", "[%r16]") + load + tc.DONE, image, words)
    assert (early.category, "tcgen05.mma of warp" in early.message) == ("missing-wait", True)
    out = np.zeros(128, np.float32)
    store = "mul.wide.u32 %rd9, %r0, 4; add.s64 %rd9, %rd1, %rd9; st.global.u32 [%rd9], %v0;\n"
    wait = "tcgen05.wait::ld.sync.aligned;\n"
    body += tc.mma("tf32.ashift", "[%r16]") + tc.DONE
    tc.run(body + load + wait + store, image, out, *words)
    assert np.array_equal(out, SHIFTED[:, 0])


def test_another_accumulator_behind_ashift_must_wait(tc):
    body, image, words, _ = operands(tc)
    other = tc.mma("tf32", "[%r16]").replace("[%r12]", "[%r21]")
    body += "add.u32 %r21, %r12, 64;\n" + tc.mma("tf32.ashift", "[%r16]") + other
    trap = tc.refused(body + tc.DONE, image, words)
    assert (trap.category, "operand A" in trap.message) == ("missing-wait", True)


@pytest.mark.parametrize(
    ("a", "usage", "said"),
    [
        ("%rd2", "", "operand A in tensor memory"),
        ("[%r16]", ".collector::a::fill", "without .collector::a::fill"),
        ("[%r16]", ".collector::a::use", "without .collector::a::use"),
    ],
)
def test_ashift_needs(tc, a, usage, said):
    body, image, words, _ = operands(tc)
    trap = tc.refused(body + tc.mma(f"tf32.ashift{usage}", a) + tc.DONE, image, words)
    assert (trap.category, said in trap.message) == ("operand", True)


def test_ashift_needs_128_or_256_rows(tc):
    body, image, words, _ = operands(tc)
    words[2] = tc.instruction_word("tf32", "tf32", "f32", 64, N)
    trap = tc.refused(body + tc.mma("tf32.ashift", "[%r16]") + tc.DONE, image, words)
    assert (trap.category, "M = 128 or 256, got 64" in trap.message) == ("descriptor", True)

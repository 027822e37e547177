"""tcgen05.mma.sp: structured sparse operands A against products of the expanded matrices (PTX ISA
§9.7.16.10.8; metadata of 128 rows a CTA)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.machine import swizzle

ATOM = swizzle.B128
PAIRS = {0x4: (0, 1), 0x8: (0, 2), 0xC: (0, 3), 0x9: (1, 2), 0xD: (1, 3), 0x6: (2, 1), 0xE: (2, 3)}
SINGLES = {0x4: (0,), 0xE: (1,)}


def sparse(tc, kind: str, a: str = "%rd2", more: str = "") -> str:
    return (
        f"@%p0 tcgen05.mma.sp.cta_group::1.kind::{kind} [%r12], {a}, %rd3, [%r12+256], %r11, "
        f"{more}%p3;\n"
    )


def expanded(a: np.ndarray, codes: np.ndarray, places: dict[int, tuple[int, ...]]) -> np.ndarray:
    """The sparse matrix that the kept elements ``a`` and the codes of its chunks stand for."""
    count, wide = (1, 2) if places is SINGLES else (2, 4)
    dense = np.zeros((len(a), codes.shape[1] * wide))
    for row in range(len(a)):
        for chunk in range(codes.shape[1]):
            for number, place in enumerate(places[codes[row, chunk]]):
                dense[row, chunk * wide + place] = a[row, chunk * count + number]
    return dense


def wide_metadata(codes: np.ndarray) -> np.ndarray:
    """Two words a row, in the row's lane."""
    words = np.zeros((128, 2), np.uint32)
    for row in range(128):
        for chunk in range(16):
            words[row, chunk // 8] |= np.uint32(int(codes[row, chunk]) << 4 * (chunk % 8))
    return words


def narrow_metadata(codes: np.ndarray) -> np.ndarray:
    """One word a lane: rows r and r + 8 share the lanes of both halves of K."""
    words = np.zeros((128, 1), np.uint32)
    for row in range(128):
        for chunk in range(8):
            lane = row // 16 * 16 + chunk // 4 * 8 + row % 8
            shift = row // 8 % 2 * 16 + chunk % 4 * 4
            words[lane, 0] |= np.uint32(int(codes[row, chunk]) << shift)
    return words


def store(tc, words: np.ndarray, image: bytearray, at: int, selector: int = 0) -> str:
    """Each thread copies its lane's words from ``at`` of the image to column 256 + selector."""
    count = words.shape[1]
    image[at : at + words.nbytes] = words.tobytes()
    load = f"mad.wide.u32 %rd9, %r0, {4 * count}, %rd0;\n"
    load += "".join(f"ld.global.b32 %v{i}, [%rd9+{at + 4 * i}];\n" for i in range(count))
    return tc.store_fragment(load, count).replace("[%r15+256]", f"[%r15+{256 + selector}]")


def random_codes(rng, chunks: int, places) -> np.ndarray:
    return rng.choice(list(places), (128, chunks))


FLOATS = [("bf16", "f16", 16, PAIRS), ("f16", "f16", 16, PAIRS), ("tf32", "tf32", 8, SINGLES)]


@pytest.mark.parametrize("selector", [0, 1])
@pytest.mark.parametrize(("name", "kind", "kept", "places"), FLOATS)
def test_a_row_meets_the_elements_of_b_that_its_metadata_names(
    tc, name, kind, kept, places, selector
):
    rng = np.random.default_rng(kept + selector)
    a, b = tc.random_matrix(rng, 128, kept, name), tc.random_matrix(rng, 64, 2 * kept, name)
    codes = random_codes(rng, 8, places)
    image = bytearray(32768)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    body = store(tc, narrow_metadata(codes), image, 24576, selector)
    read, out = tc.dump_d(128, 64)
    idesc = tc.instruction_word(name, name, "f32", 128, 64) | 4 | selector
    body += tc.FALSE + sparse(tc, kind) + tc.TRUE + sparse(tc, kind) + tc.DONE + read
    tc.run(body, image, out, adesc, bdesc, idesc)
    got = tc.read_d(out, 128, 64).view(np.float32)
    assert np.array_equal(got, 2 * tc.product(expanded(a, codes, places), b))


@pytest.mark.parametrize("a_in_tensor_memory", [False, True])
def test_metadata_of_bytes_takes_two_columns_of_the_rows_own_lanes(tc, a_in_tensor_memory):
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (128, 32)).astype(np.int8)
    b = rng.integers(-128, 128, (64, 64)).astype(np.int8)
    codes = random_codes(rng, 16, PAIRS)
    image = bytearray(40960)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    body = store(tc, wide_metadata(codes), image, 24576)
    if a_in_tensor_memory:
        body += store(tc, a.view(np.uint32), image, 32768, selector=64)
    operand = "[%r12+320]" if a_in_tensor_memory else "%rd2"
    read, out = tc.dump_d(128, 64)
    idesc = 4 | 2 << 4 | 1 << 7 | 1 << 10 | 64 >> 3 << 17 | 128 >> 4 << 24
    tc.run(body + tc.FALSE + sparse(tc, "i8", operand) + tc.DONE + read, image, out, adesc, bdesc,
           idesc)  # fmt: skip
    got = tc.read_d(out, 128, 64).view(np.int32)
    assert np.array_equal(got, tc.product(expanded(a, codes, PAIRS), b).astype(np.int64))


def test_skipped_elements_of_b_take_no_part_even_if_infinite(tc):
    a = np.ones((128, 16), tc.TYPES["f16"])
    b = np.full((64, 32), np.inf, tc.TYPES["f16"])
    b[:, 0::4] = b[:, 3::4] = 1
    image = bytearray(32768)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    body = store(tc, narrow_metadata(np.full((128, 8), 0xC)), image, 24576)
    read, out = tc.dump_d(128, 64)
    idesc = tc.instruction_word("f16", "f16", "f32", 128, 64) | 4
    tc.run(body + tc.FALSE + sparse(tc, "f16") + tc.DONE + read, image, out, adesc, bdesc, idesc)
    assert (tc.read_d(out, 128, 64).view(np.float32) == 16).all()


IMAGE, META, OUT = 32768, 24576, 64 * 128 * 4
TOGETHER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
OWN = f"""ld.param.u64 %rd0, [image];
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;  // before tcgen05.alloc
  mov.u32 %r40, %cluster_ctarank; mul.wide.u32 %rd9, %r40, {IMAGE}; add.u64 %rd0, %rd0, %rd9;
"""
LEADER = f"""setp.eq.u32 %p4, %r40, 0; and.pred %p0, %p0, %p4;
mul.wide.u32 %rd9, %r40, {OUT}; add.u64 %rd1, %rd1, %rd9;
"""
COMMIT = """.reg .b16 %both; mov.b16 %both, 3;
@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
  [%r1], %both;
"""


def pair_kernel(tc, metadata: str, load: str) -> str:
    body = metadata.replace("bar.sync 0;", TOGETHER) + LEADER + tc.FALSE + sparse(tc, "f16")
    text = tc.kernel(body + COMMIT + tc.WAIT + load)
    text = text.replace("ld.param.u64 %rd0, [image];", OWN)
    return text.replace("cta_group::1", "cta_group::2")


def test_each_cta_of_a_pair_holds_the_metadata_of_its_rows(tc):
    rng = np.random.default_rng(9)
    a, b = tc.random_matrix(rng, 256, 16, "f16"), tc.random_matrix(rng, 64, 32, "f16")
    codes = [random_codes(rng, 8, PAIRS) for _ in range(2)]
    images, descriptors, metadata = [], [], ""
    for rank in range(2):
        image = bytearray(IMAGE)
        descriptors = [
            tc.place_operand(image, a[128 * rank : 128 * rank + 128], ATOM, False, 0),
            tc.place_operand(image, b[32 * rank : 32 * rank + 32], ATOM, False, 16384),
        ]
        metadata = store(tc, narrow_metadata(codes[rank]), image, META)
        images.append(image)
    load, out = tc.dump_d(128, 64)
    both = np.zeros((2, out.size), np.uint32)
    word = tc.instruction_word("f16", "f16", "f32", 256, 64) | 4
    data = np.frombuffer(b"".join(images), np.uint8).copy()
    params = [data, IMAGE, both, *descriptors, word]
    launch(pair_kernel(tc, metadata, load), "k", grid=(2, 1, 1), block=128, cluster=(2, 1, 1),
           shared_bytes=tc.SHARED_BYTES, params=params)  # fmt: skip
    got = np.concatenate([tc.read_d(both[rank], 128, 64).view(np.float32) for rank in range(2)])
    assert np.array_equal(got, tc.product(expanded(a, np.concatenate(codes), PAIRS), b))


def refusal(
    tc, codes: np.ndarray | None, word: int, text: str = "", *, ones: bool = False
) -> object:
    image = bytearray(b"\x3c" * 24576 * ones + bytes(32768 - 24576 * ones))
    adesc = tc.descriptor(0, 16, 1024, ATOM)
    body = "" if codes is None else store(tc, narrow_metadata(codes), image, 24576)
    step = sparse(tc, "f16") if not text else sparse(tc, "f16").replace("+256]", text)
    return tc.refused(body + tc.FALSE + step + tc.DONE, image, (adesc, adesc, word))


WORD = 1 << 4 | 64 >> 3 << 17 | 128 >> 4 << 24
REFUSED_WORDS = [
    (WORD, "descriptor", "sparsity (bit 2) must be 1 for a sparse operation, got 0"),
    (WORD | 6, "unmodelled", "sparsity selector 2 (PTX ISA section 9.7.16.10.8.4)"),
    (WORD - (64 >> 4 << 24) | 4, "unmodelled", "a sparse operand A with M=64"),
]


@pytest.mark.parametrize(("word", "category", "message"), REFUSED_WORDS)
def test_a_descriptor_of_another_sparse_form_is_refused(tc, word, category, message):
    trap = refusal(tc, np.full((128, 8), 0x4), word)
    assert trap.category == category and message in trap.message


@pytest.mark.parametrize("code", [0x0, 0x5])
def test_metadata_of_zeros_may_be_anything_and_is_told_of(tc, code):
    """CUTLASS's compressor writes 0b0000 for four zeros (example 83)"""
    rng = np.random.default_rng(code)
    a, b = tc.random_matrix(rng, 128, 16, "f16"), tc.random_matrix(rng, 64, 32, "f16")
    codes = random_codes(rng, 8, PAIRS)
    a[9, 10:12], codes[9, 5] = 0, 0x4
    wanted = tc.product(expanded(a, codes, PAIRS), b)
    codes[9, 5] = code
    image = bytearray(32768)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    body = store(tc, narrow_metadata(codes), image, 24576)
    read, out = tc.dump_d(128, 64)
    body += tc.FALSE + sparse(tc, "f16") + tc.DONE + read
    idesc = tc.instruction_word("f16", "f16", "f32", 128, 64) | 4
    report = tc.run(body, image, out, adesc, bdesc, idesc)
    assert np.array_equal(tc.read_d(out, 128, 64).view(np.float32), wanted)
    assert [each.category for each in report.warnings] == ["undefined-metadata"]


def test_metadata_that_the_isa_leaves_undefined_is_an_error(tc):
    codes = np.full((128, 8), 0x4)
    codes[9, 5] = 0x5
    trap = refusal(tc, codes, WORD | 4, ones=True)
    assert trap.category == "operand" and "row 9, chunk 5 must be one of" in trap.message


def test_metadata_that_nobody_wrote_is_an_error(tc):
    trap = refusal(tc, None, WORD | 4)
    assert trap.category == "uninitialised-read" and "metadata" in trap.message


def test_metadata_at_an_odd_column_is_outside_the_model(tc):
    trap = refusal(tc, np.full((128, 8), 0x4), WORD | 4, "+257]")
    assert trap.category == "unmodelled" and "9.7.16.10.8" in trap.message


def test_stores_of_metadata_must_be_waited_for(tc):
    image = bytearray(32768)
    body = store(tc, narrow_metadata(np.full((128, 8), 0x4)), image, 24576)
    body = body.replace("tcgen05.wait::st.sync.aligned;\n", "")
    adesc = tc.descriptor(0, 16, 1024, ATOM)
    trap = tc.refused(body + tc.FALSE + sparse(tc, "f16"), image, (adesc, adesc, WORD | 4))
    assert trap.category == "missing-wait" and "tcgen05.mma metadata" in trap.message


def stationary(text: str, mask: str = "") -> str:
    return text.replace("mma.sp", "mma.ws.sp").replace("%p3;", f"%p3{mask};")


MASK = 1 << 39 | 2 << 40 | 3 << 48
"""Four columns of B in use, three that count as zero: the first example of §9.7.16.4.3."""


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "kind", "kept", "places"), FLOATS)
def test_a_stationary_product_of_128_rows_has_the_same_metadata(
    tc, name, kind, kept, places, masked
):
    rng = np.random.default_rng(kept)
    a, b = tc.random_matrix(rng, 128, kept, name), tc.random_matrix(rng, 64, 2 * kept, name)
    codes = random_codes(rng, 8, places)
    image = bytearray(32768)
    adesc = tc.place_operand(image, a, ATOM, False, 0)
    bdesc = tc.place_operand(image, b, ATOM, False, 16384)
    body = store(tc, narrow_metadata(codes), image, 24576)
    read, out = tc.dump_d(128, 64)
    idesc = tc.instruction_word(name, name, "f32", 128, 64) | 4
    body += tc.FALSE + stationary(sparse(tc, kind), f", {MASK}" if masked else "")
    tc.run(body + tc.DONE + read, image, out, adesc, bdesc, idesc)
    used = (np.arange(64) % 7 < 4) | (not masked)
    got = tc.read_d(out, 128, 64).view(np.float32)
    assert np.array_equal(got, tc.product(expanded(a, codes, places), b) * used)


@pytest.mark.parametrize(
    ("m", "n", "category", "said"),
    [
        (64, 64, "unmodelled", "sparse operand A with M=64"),
        (32, 128, "unmodelled", "sparse operand A with M=32"),
        (128, 256, "descriptor", "N must be 64 or 128, got 256"),
        (256, 64, "descriptor", "M must be 32, 64 or 128, got 256"),
    ],
)
def test_other_shapes_of_stationary_sparse_products_are_refused(tc, m, n, category, said):
    idesc = tc.instruction_word("bf16", "bf16", "f32", m, n) | 4
    adesc = tc.descriptor(0, 16, 1024, ATOM)
    body = tc.FALSE + stationary(sparse(tc, "f16")) + tc.DONE
    trap = tc.refused(body, bytes(32768), (adesc, adesc, idesc))
    assert (trap.category, said in trap.message) == (category, True), trap.message

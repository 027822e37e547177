"""tcgen05.mma.sp with block scaling, against products of the expanded and scaled matrices (PTX ISA
§9.7.16.10.7 and §9.7.16.10.8)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

PLACES = {
    0x4: (0, 1), 0x8: (0, 2), 0xC: (0, 3), 0x9: (1, 2), 0xD: (1, 3), 0x6: (2, 1), 0xE: (2, 3),
}  # fmt: skip
N, SFA, SFB, META = 32, 24576, 25600, 26624
E4M3, E2M1 = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn
FORMS = [
    ("mxf8f6f4", "block32", 1, 32, E4M3, 1, 0),
    ("mxf8f6f4", "block32", 1, 32, E4M3, 1, 3),
    ("mxf4", "block32", 2, 64, E2M1, 2, 2),
    ("mxf4nvf4", "block32", 2, 64, E2M1, 2, 0),
    ("mxf4nvf4", "block16", 4, 64, E2M1, 2, 0),
]
"""Kind, vector, factors and stored elements of a row, type, elements kept together, factor id."""


def expanded(a: np.ndarray, codes: np.ndarray, together: int) -> np.ndarray:
    """The sparse matrix that the kept elements and the codes of its chunks stand for."""
    dense = np.zeros((len(a), 2 * a.shape[1]))
    for row, chunk in np.ndindex(codes.shape):
        for number, place in enumerate(PLACES[codes[row, chunk]]):
            to, at = 4 * chunk + place, 2 * chunk + number
            dense[row, to * together : (to + 1) * together] = a[row, at * together :][:together]
    return dense


def packed(matrix: np.ndarray) -> np.ndarray:
    """uint8 rows as they lie in memory: bytes, or two 4-bit elements a byte, the first one low."""
    codes = matrix.view(np.uint8)
    return codes if matrix.dtype != E2M1 else codes[:, ::2] | codes[:, 1::2] << 4


def place_factors(image: bytearray, codes: np.ndarray, base: int, first: int) -> None:
    for (row, block), code in np.ndenumerate(codes):
        image[base + row % 32 * 16 + row // 32 * 4 + first + block] = code


def metadata(tc, codes: np.ndarray, image: bytearray) -> str:
    """Each thread stores two words at column 300 of its own lane: eight chunks a word."""
    words = np.zeros((128, 2), np.uint32)
    for (row, chunk), code in np.ndenumerate(codes):
        words[row, chunk // 8] |= np.uint32(int(code) << 4 * (chunk % 8))
    image[META : META + words.nbytes] = words.tobytes()
    load = "mad.wide.u32 %rd9, %r0, 8, %rd0;\n"
    load += "".join(f"ld.global.b32 %v{i}, [%rd9+{META + 4 * i}];\n" for i in range(2))
    return tc.store_fragment(load, 2).replace("[%r15+256]", "[%r15+300]")


def product(tc, form, word_more: int = 4, seed: int = 0):
    kind, vector, blocks, kept, type_, together, first = form
    rng = np.random.default_rng(kept + blocks + first)
    a = (rng.integers(-6, 7, (128, kept)) / 2).astype(type_)
    b = (rng.integers(-6, 7, (N, 2 * kept)) / 2).astype(type_)
    codes = rng.choice(list(PLACES), (128, 16))
    sfa, sfb = rng.integers(124, 131, (128, blocks)), rng.integers(124, 131, (N, blocks))
    image = bytearray(32768)
    adesc = tc.place_operand(image, packed(a), swizzle.B128, False, 0)
    bdesc = tc.place_operand(image, packed(b), swizzle.B128, False, 16384)
    place_factors(image, sfa, SFA, first)
    place_factors(image, sfb, SFB, first)
    body = metadata(tc, codes, image)
    for base, column in ((SFA, 256), (SFB, 264)):
        word = tc.descriptor(base, 0, 128, swizzle.NONE)
        body += f"mov.u64 %rd10, {word};\n"
        body += f"@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+{column}], %rd10;\n"
    body += tc.FALSE + (
        f"@%p0 tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale.{vector} [%r12], %rd2, %rd3,"
        " [%r12+300], %r11, [%r12+256], [%r12+264], %p3;\n"
    )
    read, out = tc.dump_d(128, N)
    idesc = N >> 3 << 17 | 1 << 27 | 1 << 23 | first << 4 | first << 29 | word_more
    idesc |= 0 if kind == "mxf8f6f4" else 1 << 7 | 1 << 10
    tc.run(body + tc.DONE + read, image, out, adesc, bdesc, idesc, seed=seed)
    left = expanded(a.astype(np.float64), codes, together)
    left *= np.repeat(2.0 ** (sfa - 127.0), 2 * kept // blocks, axis=1)
    right = b.astype(np.float64) * np.repeat(2.0 ** (sfb - 127.0), 2 * kept // blocks, axis=1)
    return tc.read_d(out, 128, N).view(np.float32), (left @ right.T).astype(np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_rows_meet_the_scaled_elements_that_their_metadata_names(tc, form):
    got, wanted = product(tc, form)
    np.testing.assert_array_equal(got, wanted)


def test_the_instruction_descriptor_must_say_that_it_is_sparse(tc):
    with pytest.raises(
        tc.Trap, match=r"sparsity \(bit 2\) must be 1 for a sparse operation"
    ) as caught:
        product(tc, FORMS[0], word_more=0)
    assert caught.value.category == "descriptor"

"""Block-scaled tcgen05.mma of a CTA pair: M=256 and 128, data-path layouts A and B (PTX ISA
§9.7.16.10)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.machine import swizzle

IMAGE = 45056
FACTORS_A, FACTORS_B = 40960, 43008
OWN = """ld.param.u64 %rd0, [image];
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;  // before tcgen05.alloc
  mov.u32 %r40, %cluster_ctarank; mul.wide.u32 %rd9, %r40, IMAGE_BYTES; add.u64 %rd0, %rd0, %rd9;
"""
START = """barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.eq.u32 %p4, %r40, 0; and.pred %p0, %p0, %p4;
mul.wide.u32 %rd9, %r40, OUT_BYTES; add.u64 %rd1, %rd1, %rd9;
mov.u64 %rd10, SFA; mov.u64 %rd11, SFB;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+256], %rd10;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12+264], %rd11;
"""
MMA = """@%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r12], %rd2, %rd3, %r11,
  [%r12+256], [%r12+264], %p3;
"""
COMMIT = """.reg .b16 %both; mov.b16 %both, 3;
@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
  [%r1], %both;
"""


def word(n: int, rows: int = 2) -> int:
    return n >> 3 << 17 | rows << 27 | 1 << 23


def image_of(tc, a, b, sfa, sfb) -> tuple[bytearray, int, int]:
    """One CTA's shared memory: its rows of A, its columns of B, its factors"""
    image = bytearray(IMAGE)
    adesc = tc.place_operand(image, a, swizzle.B128, False, 0)
    bdesc = tc.place_operand(image, b, swizzle.B32, False, 20480)
    for codes, base in ((sfa, FACTORS_A), (sfb, FACTORS_B)):
        for m in range(128):
            at = base + m % 32 * 16 + m // 32 * 4
            image[at : at + 4] = bytes([codes[m]] * 4)
    return image, adesc, bdesc


def pair_kernel(tc, load: str, out_bytes: int) -> str:
    factors = [tc.descriptor(at, 0, 128, swizzle.NONE) for at in (FACTORS_A, FACTORS_B)]
    text = tc.kernel(START + tc.FALSE + MMA + COMMIT + tc.WAIT + load)
    text = text.replace("ld.param.u64 %rd0, [image];", OWN).replace("cta_group::1", "cta_group::2")
    for name, value in (("IMAGE_BYTES", IMAGE), ("OUT_BYTES", out_bytes), ("SFA", factors[0]),
                        ("SFB", factors[1])):  # fmt: skip
        text = text.replace(name, str(value))
    return text


@pytest.mark.parametrize(("n", "seed"), [(32, 0), (64, 1), (128, 2)])
def test_each_cta_scales_its_rows_with_its_own_factors(tc, n, seed):
    """Both CTAs hold the factors of all columns of B; each of them half of its columns"""
    rng = np.random.default_rng(n)
    a, b = ((rng.integers(-8, 9, (rows, 32)) / 2).astype(ml_dtypes.float8_e4m3fn)
            for rows in (256, n))  # fmt: skip
    sfa, sfb = rng.integers(124, 131, 256), rng.integers(124, 131, 128)
    images, descriptors = [], []
    for rank in (0, 1):
        half = slice(rank * n // 2, (rank + 1) * n // 2)
        rows = slice(128 * rank, 128 * rank + 128)
        image, *descriptors = image_of(tc, a[rows], b[half], sfa[rows], sfb)
        images.append(image)
    load, out = tc.dump_d(128, n)
    both = np.zeros((2, out.size), np.uint32)
    data = np.frombuffer(b"".join(images), np.uint8).copy()
    launch(pair_kernel(tc, load, out.nbytes), "k", grid=(2, 1, 1), block=128, cluster=(2, 1, 1),
           shared_bytes=tc.SHARED_BYTES, seed=seed,
           params=[data, IMAGE, both, *descriptors, word(n)])  # fmt: skip
    left = a.astype(np.float64) * 2.0 ** (sfa[:, None] - 127)
    right = b.astype(np.float64) * 2.0 ** (sfb[:n, None] - 127)
    got = np.concatenate([tc.read_d(both[rank], 128, n).view(np.float32) for rank in (0, 1)])
    np.testing.assert_array_equal(got, (left @ right.T).astype(np.float32))


HALVES_COPY = "64x128b.warpx2::01_23"


def place_halves(image: bytearray, codes: np.ndarray) -> None:
    """Factors of B: 32 rows of the copy for the first half of its columns, 32 for the second."""
    half = len(codes) // 2
    for n, code in enumerate(codes):
        row = n // half * 32 + n % half % 32
        at = FACTORS_B + 16 * row + 4 * (n % half // 32)
        image[at : at + 4] = bytes([code] * 4)


def half_rows(out: np.ndarray, n: int) -> np.ndarray:
    """D[64, n] of one CTA: lanes 64 onward hold the second half of its columns."""
    words = out.reshape(-1, 8, 128).transpose(2, 0, 1).reshape(128, n // 2)
    return np.concatenate((words[:64], words[64:]), axis=1).view(np.float32)


@pytest.mark.parametrize("n", [32, 64, 160, 256])
def test_halves_of_the_lanes_scale_halves_of_the_columns_if_m_is_128(tc, n):
    """Data-path layout B: both CTAs hold the factors of all columns of B, in two groups of lanes"""
    rng = np.random.default_rng(n)
    a, b = ((rng.integers(-8, 9, (rows, 32)) / 2).astype(ml_dtypes.float8_e4m3fn)
            for rows in (128, n))  # fmt: skip
    sfa, sfb = rng.integers(124, 131, (2, 128)), rng.integers(124, 131, n)
    images, descriptors = [], []
    for rank in (0, 1):
        half, rows = slice(rank * n // 2, (rank + 1) * n // 2), slice(64 * rank, 64 * rank + 64)
        image, *descriptors = image_of(tc, a[rows], b[half], sfa[rank], np.zeros(128, int))
        place_halves(image, sfb)
        images.append(image)
    load, out = tc.dump("32x32b.x8", 8, n // 16, 8), np.zeros(64 * n, np.uint32)
    text = pair_kernel(tc, load, out.nbytes)
    first, second = text.split("32x128b.warpx4 [%r12+264]")
    both = np.zeros((2, out.size), np.uint32)
    data = np.frombuffer(b"".join(images), np.uint8).copy()
    launch(f"{first}{HALVES_COPY} [%r12+264]{second}", "k", grid=(2, 1, 1), block=128,
           cluster=(2, 1, 1), shared_bytes=tc.SHARED_BYTES,
           params=[data, IMAGE, both, *descriptors, word(n, 1)])  # fmt: skip
    left = a.astype(np.float64) * 2.0 ** (sfa[:, :64].reshape(128, 1) - 127)
    right = b.astype(np.float64) * 2.0 ** (sfb[:, None] - 127)
    got = np.concatenate([half_rows(both[rank], n) for rank in (0, 1)])
    np.testing.assert_array_equal(got, (left @ right.T).astype(np.float32))


def test_different_factors_in_the_copies_of_a_half_are_an_error(tc):
    load, out = tc.dump_d(128, 32)
    image, *descriptors = image_of(tc, np.zeros((64, 32), np.uint8), np.zeros((16, 32), np.uint8),
                                   np.zeros(128, int), np.arange(128))  # fmt: skip
    text = pair_kernel(tc, load, out.nbytes)
    first, second = text.split("32x128b.warpx4 [%r12+264]")
    with pytest.raises(tc.Trap) as caught:
        launch(f"{first}64x128b.warpx2::02_13 [%r12+264]{second}", "k", grid=(2, 1, 1), block=128,
               cluster=(2, 1, 1), shared_bytes=tc.SHARED_BYTES,
               params=[np.frombuffer(image + image, np.uint8).copy(), IMAGE,
                       np.zeros(2 * out.size, np.uint32), *descriptors, word(32, 1)])  # fmt: skip
    assert caught.value.category == "tmem"
    assert "the first two and in the last two 32-lane quarters" in str(caught.value)

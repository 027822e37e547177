"""Tensor maps of 4- and 6-bit elements: dense, or 16 elements padded to 16 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap

PADDED = {"16u4_align16b": 4, "16u6_align16b": 6}


def dense_codes(codes: np.ndarray, bits: int) -> np.ndarray:
    """uint8 rows of packed codes, low bits first."""
    flags = (codes[..., None] >> np.arange(bits)) & 1
    return np.packbits(flags.reshape(len(codes), -1), axis=1, bitorder="little")


def codes_in(chunk: np.ndarray, bits: int) -> np.ndarray:
    """The 16 codes at the start of a chunk of 16 bytes."""
    flags = np.unpackbits(chunk[: 2 * bits], bitorder="little").reshape(16, bits)
    return flags @ (1 << np.arange(bits))


@pytest.mark.parametrize("mode", ["none", "128B"])
@pytest.mark.parametrize("dtype", PADDED)
def test_padded_elements_lie_in_chunks_of_16_bytes(copies, dtype, mode):
    bits, rows = PADDED[dtype], 8
    codes = np.random.default_rng(1).integers(0, 1 << bits, (12, 256))
    source = dense_codes(codes, bits)
    tensor_map = TensorMap(source, dtype, (256, 12), (source.shape[1],), (128, rows), swizzle=mode)
    out = np.zeros(128 * rows, np.uint8)
    body = copies.load_body(2, (128, 7), 128 * rows, fill=False)
    assert tensor_map.box_bytes == 128 * rows * bits // 8
    copies.run(copies.with_bytes(body, tensor_map), out, tensor_map)
    for row in range(rows):
        for chunk in range(8):
            at = row * 128 + (chunk ^ row % 8 if mode == "128B" else chunk) * 16
            got = codes_in(out[at : at + 16], bits)
            first = 128 + 16 * chunk
            wanted = codes[7 + row, first : first + 16] if row < 5 else np.zeros(16)
            assert np.array_equal(got, wanted), (row, chunk)


@pytest.mark.parametrize("dtype", ["16u4_align8b", "e2m1", 13])
def test_dense_4_bit_elements_are_counted_in_elements(copies, dtype):
    source = np.random.default_rng(2).integers(1, 256, (10, 64), dtype=np.uint8)
    tensor_map = TensorMap(source, dtype, (120, 10), (64,), (64, 16), swizzle="32B")
    out = np.zeros((16, 32), np.uint8)
    body = copies.load_body(2, (90, 2), 512, fill=False)
    copies.run(copies.with_bytes(body, tensor_map), out, tensor_map)
    plain = np.zeros((16, 32), np.uint8)
    plain[:8, :15] = source[2:, 45:60]
    for row in range(16):
        swapped = row // 4 % 2
        chunks = plain[row].reshape(2, 16)
        assert np.array_equal(out[row].reshape(2, 16), chunks[::-1] if swapped else chunks)


def test_a_padded_load_feeds_the_tensor_core_bytes_it_may_read(copies):
    """Gaps count as written: the matrix operand's rows are read as a whole."""
    source = np.zeros((8, 128), np.uint8)
    tensor_map = TensorMap(source, "16u4_align16b", (256, 8), (128,), (128, 8))
    out = np.zeros(1024, np.uint8)
    body = copies.load_body(2, (0, 0), 1024, fill=False)
    copies.run(copies.with_bytes(body, tensor_map), out, tensor_map)
    assert (out.reshape(-1, 16)[:, 8:] != 0).all()


@pytest.mark.parametrize(
    "dtype, x, message",
    [("16u4_align8b", 3, "that is no multiple of 2, got 3"),
     ("16u6_align16b", 24, "that is no multiple of 16, got 24")],
)  # fmt: skip
def test_a_box_that_starts_inside_a_unit_is_unmodelled(copies, dtype, x, message):
    source = np.zeros((8, 192), np.uint8)
    tensor_map = TensorMap(source, dtype, (256, 8), (192,), (128, 8))
    trap = copies.refused(copies.load_body(2, (x, 0), 1024, fill=False), tensor_map)
    assert trap.category == "unmodelled" and message in trap.message


def test_padded_elements_are_not_stored(copies):
    source = np.zeros((8, 192), np.uint8)
    tensor_map = TensorMap(source, "16u6_align16b", (256, 8), (192,), (128, 8))
    body = copies.store_body(size=1024)
    trap = copies.refused(body, tensor_map, other=np.zeros(1024, np.uint8))
    assert trap.message == "tensor store through a map of 16u6_align16b"

"""Element types of matrix operands by PTX name: raw bytes to numbers.

Floating point becomes float32 (float64 for f64), where every value is exact, integers too:
sums of products of at most 64 of them are exact there.
Source: PTX ISA §5.2.3 (alternate floating-point formats), §5.2.5 (packed types).
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

BITS = {
    "f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
    "e2m3": 6, "e3m2": 6, "e2m1": 4, "e2m1x2": 4, "s4": 4, "u4": 4, "ue8m0": 8, "ue4m3": 8,
    "b1": 1,
}  # fmt: skip
"""Bits of one element."""

INTEGERS = ("s8", "u8", "s4", "u4")


def _view(dtype: type, wide: type = np.float32) -> Callable[[np.ndarray], np.ndarray]:
    return lambda raw: raw.view(dtype).astype(wide)


def _tf32(raw: np.ndarray) -> np.ndarray:
    return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _nibbles(raw: np.ndarray) -> np.ndarray:
    """The two halves of each byte, low half first, along the last axis."""
    pairs = np.stack([raw.view(np.uint8) & 15, raw.view(np.uint8) >> 4], axis=-1)
    return pairs.reshape(*raw.shape[:-1], -1)


def _s4(raw: np.ndarray) -> np.ndarray:
    values = _nibbles(raw).astype(np.int8)
    return np.where(values > 7, values - 16, values).astype(np.float32)


def _bits(raw: np.ndarray) -> np.ndarray:
    flags = np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little")
    return flags.astype(np.float32)


def _ue8m0(raw: np.ndarray) -> np.ndarray:
    codes = raw.view(np.uint8)
    values = np.exp2(codes.astype(np.float64) - 127).astype(np.float32)
    return np.where(codes == 0xFF, np.float32(np.nan), values)


def _ue4m3(raw: np.ndarray) -> np.ndarray:
    codes = raw.view(np.uint8) & np.uint8(0x7F)
    return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)


_DECODERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "f64": _view(np.float64, np.float64),
    "tf32": _tf32,
    "f16": _view(np.float16),
    "bf16": _view(ml_dtypes.bfloat16),
    "e4m3": _view(ml_dtypes.float8_e4m3fn),
    "e5m2": _view(ml_dtypes.float8_e5m2),
    "s8": _view(np.int8),
    "u8": _view(np.uint8),
    "s4": _s4,
    "u4": lambda raw: _nibbles(raw).astype(np.float32),
    "b1": _bits,
    "ue8m0": _ue8m0,
    "ue4m3": _ue4m3,
    "e2m1x2": lambda raw: decode_small(_nibbles(raw), "e2m1"),
}

_CONTAINED_AT = {4: 2, 6: 0}
"""Lowest bit of an element in its container, by its bits.

Where the ISA places six bits in words, they are the low ones: the tensor type `.b6p2x16` has its
two bits of padding at the MSB (§5.5.1.1), as registers of `mma.sync` have. For tensor memory it
has figures only, and an example of NVIDIA's takes bits 6 to 1 (docs/emulator.md).
"""
_SMALL = {
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}


def decode(raw: np.ndarray, name: str) -> np.ndarray:
    """Values of little-endian packed elements: the last axis grows or shrinks with the width.

    `raw` is a C-contiguous array of any unsigned dtype. e2m1x2 are packed e2m1; e2m3, e3m2 and
    plain e2m1 are never packed this way and have `decode_padded` and `decode_contained`.
    """
    return _DECODERS[name](raw)


def decode_padded(raw: np.ndarray, name: str) -> np.ndarray:
    """float32 values of e2m3, e3m2 or e2m1 in shared memory: 16 elements in 16 bytes.

    The elements lie packed in the first 12 or 8 of them, low bits first, the rest is padding
    (PTX ISA §5.5.1.1, the tensor types with 16-byte alignment).
    """
    return decode_small(padded_codes(raw, BITS[name]), name)


def padded_codes(raw: np.ndarray, bits: int) -> np.ndarray:
    """uint8 codes of 4- or 6-bit elements that lie 16 to 16 bytes, one code a byte."""
    groups = raw.view(np.uint8).reshape(*raw.shape[:-1], -1, 16)[..., : 2 * bits]
    flags = np.unpackbits(groups, axis=-1, bitorder="little")
    weights = (1 << np.arange(bits)).astype(np.uint8)
    codes = flags.reshape(*groups.shape[:-1], 16, bits) @ weights
    return codes.reshape(*raw.shape[:-1], -1)


def to_containers(raw: np.ndarray, bits: int) -> np.ndarray:
    """uint8 containers, as tensor memory holds them, of elements that lie 16 to 16 bytes.

    Four bits take the middle of a byte, six bits the low end (PTX ISA §9.7.16.9.1).
    """
    return padded_codes(raw, bits) << np.uint8(_CONTAINED_AT[bits])


def decode_contained(raw: np.ndarray, name: str) -> np.ndarray:
    """float32 values of e2m3, e3m2 or e2m1 in containers of eight bits."""
    bits = BITS[name]
    codes = raw.view(np.uint8) >> np.uint8(_CONTAINED_AT[bits]) & np.uint8((1 << bits) - 1)
    return decode_small(codes, name)


def decode_small(codes: np.ndarray, name: str) -> np.ndarray:
    """float32 values of e2m3, e3m2 or e2m1 codes, one in the low bits of each uint8."""
    return codes.view(_SMALL[name]).astype(np.float32)


def is_small(name: str) -> bool:
    """Is it one of the formats below eight bits that only tcgen05 kinds know?"""
    return name in _SMALL

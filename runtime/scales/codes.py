"""Encodes numbers in small floating-point types and back, and packs codes into bytes.

Packed elements are a stream of bits along the last axis: element i takes the bits from `bits · i`
on, low bits first. So the even element of e2m1 is the low half of its byte, and four elements of
e2m3 or e3m2 take three bytes. Source: PTX ISA §5.5.1 (sub-byte types of tensors).
"""

from __future__ import annotations

import numpy as np

from .formats import Element, ScaleError


def encode(values: np.ndarray, element: Element) -> np.ndarray:
    """uint8 codes of numbers: to nearest, ties to even, what is too large to the largest number.

    NaN becomes the type's NaN, where it has none the code 0. This is `cvt.rn.satfinite` of PTX,
    except that cvt takes NaN to the largest number of a type without NaN.
    """
    unknown = np.isnan(values)
    inside = np.clip(np.where(unknown, 0, values), -element.largest, element.largest)
    codes = _rounded(inside, element).astype(element.dtype).view(np.uint8)
    return codes if element.nan is None else np.where(unknown, np.uint8(element.nan), codes)


def _rounded(values: np.ndarray, element: Element) -> np.ndarray:
    """The nearest numbers that the element has; ml_dtypes would round f64 to f32 first."""
    exponents = np.maximum(np.frexp(values.astype(np.float64))[1] - 1, element.least)
    places = exponents - element.mantissa
    return np.ldexp(np.rint(np.ldexp(values, -places)), places)


def decode(codes: np.ndarray, element: Element) -> np.ndarray:
    """float64 numbers of uint8 codes, one code a byte; the sign bit of ue4m3 is ignored."""
    seen = codes & np.uint8(0x7F) if element.name == "ue4m3" else codes
    return np.ascontiguousarray(seen).view(element.dtype).astype(np.float64)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """uint8[..., n · bits / 8] from uint8[..., n] codes of so many bits; n · bits must be whole."""
    if codes.shape[-1] * bits % 8:
        raise ScaleError(
            f"scales: {bits}-bit elements must fill whole bytes along the last axis, "
            f"got {codes.shape[-1]} of them"
        )
    flags = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    *rows, count = codes.shape  # no rows leave no size to be found out
    return np.packbits(flags.reshape(*rows, count * bits), axis=-1, bitorder="little")


def unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    """uint8[..., n] codes from the uint8[..., n · bits / 8] that `pack` gives."""
    if packed.shape[-1] * 8 % bits:
        raise ScaleError(
            f"scales: bytes along the last axis must hold whole {bits}-bit elements, "
            f"got {packed.shape[-1]} bytes"
        )
    flags = np.unpackbits(packed, axis=-1, bitorder="little")
    codes = flags.reshape(*packed.shape[:-1], packed.shape[-1] * 8 // bits, bits)
    return np.packbits(codes, axis=-1, bitorder="little")[..., 0]

"""Decodes operands with block scales to numbers.

Nothing here is shared with the compiler or the emulator: an element is read by the definition of
its format (OCP Microscaling Formats 1.0, §5.3; e4m3 without sign for ue4m3), and a scale from its
place in the atom (cuBLAS, block scaling factors layout).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..element_types import DTYPES, is_torch
from ..group_sizes import OFFSETS
from .groups import rows_in_atoms

SMALL = {"e2m1": (2, 1, 1), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3)}
"""Bits of the exponent and of the fraction, and the bias."""
SCALES = {"a": "a_scales", "b": "b_scales"}
NIBBLES = ("s4", "u4")
"""Integers of four bits, those of s4 in two's complement."""
BLOCKS = {"ue8m0": 32, "ue4m3": 16}
"""Elements of an operand that share a scale of a type, in every format that has one."""


COARSE_ROWS = 128
"""Rows that share a linear scale where there is none for each row."""


def is_coded(dtype: str) -> bool:
    """Whether values of a type are read from their bits here."""
    return dtype in SMALL or dtype in BLOCKS or dtype in NIBBLES


def decoded(value: Any, dtype: str) -> np.ndarray:
    """The float64 values of an array of bytes; the last axis of packed elements grows."""
    codes = bytes_of(value)
    if dtype == "ue8m0":
        powers = np.exp2(codes.astype(np.float64) - 127)
        return np.where(codes == 0xFF, np.nan, powers)
    if dtype == "ue4m3":
        values = _float(codes & 0x7F, 4, 3, 7)
        return np.where(codes & 0x7F == 0x7F, np.nan, values)
    if dtype in NIBBLES:
        values = unpacked(codes, 4).astype(np.float64)
        return np.where((dtype == "s4") & (values >= 8), values - 16, values)
    bits, (exponent, fraction, bias) = DTYPES[dtype].bits, SMALL[dtype]
    codes = unpacked(codes, bits)
    sign = np.where(codes >> (bits - 1), -1.0, 1.0)
    return sign * _float(codes & ((1 << (bits - 1)) - 1), exponent, fraction, bias)


def bytes_of(value: Any) -> np.ndarray:
    """The bytes of an array or tensor of one-byte items."""
    if is_torch(value):
        import torch

        value = value.detach().contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(value).view(np.uint8)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Codes of `bits` bits each, one in a byte: element i of a row begins at its bit i * bits."""
    flags = np.unpackbits(packed, axis=-1, bitorder="little")
    groups = flags.reshape(*packed.shape[:-1], -1, bits)
    return (groups << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)


def _float(codes: np.ndarray, exponent: int, fraction: int, bias: int) -> np.ndarray:
    """Values without sign by exponent and fraction; the exponent 0 has no leading one."""
    high, low = codes >> fraction, codes & ((1 << fraction) - 1)
    significand = low.astype(np.float64) + np.where(high > 0, 1 << fraction, 0)
    power = np.maximum(high, 1).astype(np.float64) - bias - fraction
    del exponent  # what is left of the code
    return significand * np.exp2(power)


def scale_of_each(
    scales: np.ndarray, shape: tuple[int, ...], block: int, at: np.ndarray | None = None
) -> np.ndarray:
    """[…, rows, k] scales, one an element, from those of atoms […, row atom, K atom, 32, 4, 4], or
    from linear ones, […, rows, k / block].

    Linear ones may be fewer: each is then for as many elements of K as they say, of a row or of as
    many rows. `at` are the rows of atoms that the rows' scales are in."""
    rows, k = shape[-2:]
    if scales.ndim < 5:
        each_k, each_row = k // scales.shape[-1], COARSE_ROWS if scales.shape[-2] < rows else 1
        return np.repeat(np.repeat(scales, each_k, -1), each_row, -2)[..., :rows, :]
    row, number = (np.arange(rows) if at is None else at)[:, None], (np.arange(k) // block)[None, :]
    return scales[..., row // 128, number // 4, row % 32, row // 32 % 4, number % 4]


def with_scales(
    values: Mapping[str, np.ndarray], tensors: Mapping[str, Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """The values of all inputs, those of A and B times their scales where they have some."""
    made = dict(values)
    for name, scales in SCALES.items():
        if scales in tensors:
            block = BLOCKS[tensors[scales]["dtype"]]
            grouped = name == "a" and OFFSETS in values
            at = rows_in_atoms(values[OFFSETS], len(values[name])) if grouped else None
            made[name] = values[name] * scale_of_each(values[scales], values[name].shape, block, at)
    return made

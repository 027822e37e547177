"""Metadata of structured sparse operands A (PTX ISA §9.7.14.6, §9.7.15.6 and §9.7.16.10.8).

A row of A holds half of its elements: two of each four, or one of each two for tf32. Four bits of
metadata a chunk say which.

In tensor memory (tcgen05.mma.sp, 128 rows a CTA), the rows of one-byte and of block-scaled kinds
lie in their own lanes, two columns wide. The others take one column: lanes r hold the first half of
K of rows r and r + 8, lanes r + 8 the second half of both.

In registers (mma.sp, wgmma.mma_async.sp, 16 rows a warp), the quad of lanes g holds rows g and
g + 8. One-byte elements: its lanes hold (row g, row g + 8) of the first half of K, then of the
second. Others: each lane holds 16 bits of both rows, and the selector names the lane or the pair of
lanes whose registers count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import Trap
from .descriptor import ONE_BYTE_KINDS
from .element_formats import BITS
from .tensor_memory import LANES, TensorMemory

SECTION = "9.7.16.10.8"
CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)
"""The meaningful values of a chunk of tcgen05 and wgmma."""
ORDERED_CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
"""Those of .sp::ordered_metadata, with rising indices."""
ANY_CODES = tuple(code for code in range(16) if code & 0b11 != code >> 2)
"""Two different indices in any order."""
_SINGLE_CODES = (0b0100, 0b1110)
_INDEX_BITS, _INDEX_MASK = 2, 0b11
_WHAT = "tcgen05.mma.sp metadata"
_PAIRED = ("mxf4", "mxf4nvf4")
"""Kinds whose elements are kept in pairs: two of each four pairs."""
_WIDE = (*ONE_BYTE_KINDS, "mxf8f6f4", *_PAIRED)
"""Kinds whose rows have two columns of metadata in their own lanes."""
_QUADS = 8


def metadata_columns(kind: str, column: int, selector: int) -> slice:
    """The columns read of metadata that starts at ``column``; a selector names one of two."""
    first = column + selector
    return slice(first, first + (2 if kind in _WIDE else 1))


def kept_positions(
    memory: TensorMemory, columns: slice, kind: str, a: np.ndarray, warn: Callable[[str, str], None]
) -> np.ndarray:
    """``int64[128, kept elements]``: the place along K of each element that a row of A holds.

    Raises ``Trap`` for unwritten metadata and for a value that the ISA leaves undefined. Of chunks
    of which ``a`` has zeros alone it warns: the compressor of CUTLASS writes 0b0000 there.
    """
    memory.require_written(slice(0, LANES), columns, _WHAT)
    nibbles = _nibbles(memory.part(slice(0, LANES), columns))
    codes = nibbles if kind in _WIDE else _rows_from_pairs(nibbles)
    unused = ~a.reshape(*codes.shape, -1).any(axis=2)
    undefined = unused & ~np.isin(codes, _SINGLE_CODES if kind == "tf32" else CODES)
    if undefined.any():
        warn(
            "undefined-metadata",
            f"sparsity metadata 0b{codes[undefined][0]:04b} of elements that are zero, which"
            f" PTX ISA section {SECTION} leaves undefined",
        )
        codes = np.where(undefined, CODES[0], codes)
    kept = _positions(codes, kind, CODES)
    return _of_pairs(kept) if kind in _PAIRED else kept


def _of_pairs(kept: np.ndarray) -> np.ndarray:
    """The places of the elements of pairs that have these places."""
    return (2 * kept[:, :, None] + np.arange(2)).reshape(len(kept), -1)


def kept_positions_of_registers(
    words: np.ndarray, type_: str, k: int, selector: int, codes: tuple[int, ...]
) -> np.ndarray:
    """``int64[16, k / 2]`` of a warp's metadata registers, ``uint32[32]``; ``k`` elements of B.

    ``codes`` are the legal values of a chunk (not tf32, which has two). Raises ``Trap`` for others.
    """
    nibbles = _nibbles(words[:, None]).reshape(_QUADS, 4, 8)
    if BITS[type_] == 8:
        found = nibbles.reshape(_QUADS, 2, 2, 8).transpose(2, 0, 1, 3)
    else:
        count = k * BITS[type_] // 256
        lanes = nibbles[:, selector * count : (selector + 1) * count]
        found = lanes.reshape(_QUADS, count, 2, 4).transpose(2, 0, 1, 3)
    return _positions(found.reshape(2 * _QUADS, -1), type_, codes)


def sparse_product(a: np.ndarray, b: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``[rows, n]``: each row of A meets the elements of B[n, k] that ``kept`` names, no others."""
    return np.stack([b[:, at] @ row for row, at in zip(a, kept, strict=True)])


def _nibbles(words: np.ndarray) -> np.ndarray:
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.stack((octets & 0xF, octets >> 4), axis=-1).reshape(len(words), -1)


def _positions(codes: np.ndarray, type_: str, legal: tuple[int, ...]) -> np.ndarray:
    single = type_ == "tf32"
    _check_codes(codes, _SINGLE_CODES if single else legal)
    inside = _single_index(codes) if single else _pair_indices(codes)
    chunks = np.arange(codes.shape[1])[None, :, None]
    return (inside + chunks * (2 if single else 4)).reshape(len(codes), -1)


def _rows_from_pairs(nibbles: np.ndarray) -> np.ndarray:
    """``[128 rows, 8 chunks]`` of ``[128 lanes, 8]``: lanes are (16 rows, half of K, row mod 8)."""
    parts = nibbles.reshape(8, 2, 8, 2, 4)
    return parts.transpose(0, 3, 2, 1, 4).reshape(LANES, 8)


def _check_codes(codes: np.ndarray, legal: tuple[int, ...]) -> None:
    wrong = np.argwhere(~np.isin(codes, legal))
    if len(wrong):
        row, chunk = wrong[0]
        names = ", ".join(f"0b{code:04b}" for code in legal)
        raise Trap("operand", f"sparsity metadata of row {row}, chunk {chunk} must be one of "
                              f"{names}, got 0b{codes[row, chunk]:04b}")  # fmt: skip


def _pair_indices(codes: np.ndarray) -> np.ndarray:
    return np.stack((codes & _INDEX_MASK, codes >> _INDEX_BITS), axis=-1).astype(np.int64)


def _single_index(codes: np.ndarray) -> np.ndarray:
    return (codes == _SINGLE_CODES[1]).astype(np.int64)[:, :, None]

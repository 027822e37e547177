"""Sparsity metadata of tcgen05.mma.sp in tensor memory, 128 rows of A a CTA (PTX ISA §9.7.16.10.8).

A row of A holds half of its elements: two of each four, or one of each two for tf32. Four bits of
metadata a chunk say which. The rows of one-byte kinds lie in their own lanes, two columns wide. The
others take one column: the lanes of rows r and r + 8 hold the first half of K of both rows, eight
lanes further the second half of both.
"""

from __future__ import annotations

import numpy as np

from .descriptor import ONE_BYTE_KINDS
from .errors import Trap
from .tensor_memory import LANES, TensorMemory

SECTION = "9.7.16.10.8"
_CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)
_SINGLE_CODES = (0b0100, 0b1110)
_INDEX_BITS, _INDEX_MASK = 2, 0b11
_WHAT = "tcgen05.mma.sp metadata"


def metadata_columns(kind: str, column: int, selector: int) -> slice:
    """The columns read of metadata that starts at ``column``; a selector names one of two."""
    first = column + selector
    return slice(first, first + (2 if kind in ONE_BYTE_KINDS else 1))


def kept_positions(memory: TensorMemory, columns: slice, kind: str) -> np.ndarray:
    """``int64[128, kept elements]``: the place along K of each element that a row of A holds.

    Raises ``Trap`` for unwritten metadata and for a value that the ISA leaves undefined.
    """
    memory.require_written(slice(0, LANES), columns, _WHAT)
    octets = np.ascontiguousarray(memory.words[:, columns]).view(np.uint8)
    nibbles = np.stack((octets & 0xF, octets >> 4), axis=-1).reshape(LANES, -1)
    codes = nibbles if kind in ONE_BYTE_KINDS else _rows_from_pairs(nibbles)
    single = kind == "tf32"
    _check_codes(codes, _SINGLE_CODES if single else _CODES)
    inside = _single_index(codes) if single else _pair_indices(codes)
    chunks = np.arange(codes.shape[1])[None, :, None]
    return (inside + chunks * (2 if single else 4)).reshape(LANES, -1)


def _rows_from_pairs(nibbles: np.ndarray) -> np.ndarray:
    """``[128 rows, 8 chunks]`` of ``[128 lanes, 8]``: lanes are (16 rows, half of K, row mod 8)."""
    parts = nibbles.reshape(8, 2, 8, 2, 4)
    return parts.transpose(0, 3, 2, 1, 4).reshape(LANES, 8)


def _check_codes(codes: np.ndarray, legal: tuple[int, ...]) -> None:
    wrong = np.argwhere(~np.isin(codes, legal))
    if len(wrong):
        row, chunk = wrong[0]
        names = ", ".join(f"0b{code:04b}" for code in legal)
        raise Trap("tmem", f"{_WHAT} of row {row}, chunk {chunk} must be one of {names}, got "
                           f"0b{codes[row, chunk]:04b}")  # fmt: skip


def _pair_indices(codes: np.ndarray) -> np.ndarray:
    return np.stack((codes & _INDEX_MASK, codes >> _INDEX_BITS), axis=-1).astype(np.int64)


def _single_index(codes: np.ndarray) -> np.ndarray:
    return (codes == _SINGLE_CODES[1]).astype(np.int64)[:, :, None]

"""Along which dimensions of a tensor copy's box the two axes of an operand move.

The rows of an operand and K are two axes of a matrix, and so lie along different dimensions of the
tensor. An operand that moves along one dimension both from row to row and along K is none that a
copy has laid out: its leading and stride byte offset are exchanged, a stride is no multiple of the
pattern, or it is read with the other major order. Elements that were arranged in global memory, all
of them along one dimension, look the same.
"""

from __future__ import annotations

import numpy as np

from ..copies.box_copy import WORD, Box
from ..machine.swizzle import LINE_BYTES


def start_of(first_word: int) -> int:
    """The byte at which a box begins, by the word of its first element: a swizzle moves that within
    its line, to which boxes are aligned."""
    return first_word * WORD // LINE_BYTES * LINE_BYTES


def share_a_dimension(words: np.ndarray, starts: np.ndarray, box: Box) -> bool:
    """Whether both axes of an operand move along one dimension of a box.

    words: int64[outer, inner], the words of the operand in shared memory; starts: of the same
    shape, where the box that filled each of them begins in bytes, -1 for those of no such box.
    """
    return any(
        _share(words, starts == start, start, box) for start in np.unique(starts[starts >= 0])
    )


def _share(words: np.ndarray, inside: np.ndarray, start: int, box: Box) -> bool:
    rows, columns = inside.any(axis=1), inside.any(axis=0)
    if not inside[np.ix_(rows, columns)].all():
        return False  # some rows reach farther into other boxes
    logical = box.swizzle.apply(words[np.ix_(rows, columns)] * WORD) - start
    return any(
        bool((place != place[:1]).any() and (place != place[:, :1]).any())
        for place in _coordinates(logical, box.shape)
    )


def _coordinates(logical: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The place along each dimension; shape: bytes of a row, and rows along the others."""
    found = []
    for size in shape:
        found.append(logical % size)
        logical = logical // size
    return found

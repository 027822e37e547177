"""The metadata operands of wgmma.mma_async.sp (PTX ISA §9.7.15.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..interface import Warp
from ..ptx.decode import Decoded
from .element_formats import BITS
from .sparse_metadata import CODES, kept_positions_of_registers, sparse_product

_METADATA, _SELECTOR = 3, 4


@dataclass(frozen=True)
class Metadata:
    """A warp's metadata registers, ``uint32[32]``, and the selector of the lanes that count."""

    words: np.ndarray
    selector: int

    def product(self, a: np.ndarray, b: np.ndarray, type_: str) -> np.ndarray:
        """``[16, n]`` of the kept elements ``a`` of type ``type_`` and B[n, k]."""
        kept = kept_positions_of_registers(self.words, type_, b.shape[1], self.selector, CODES)
        return sparse_product(a, b, kept)


def take_metadata(ins: Decoded, type_: str) -> Callable[[Warp], Metadata]:
    """Take metadata and selector off the operands, which leaves those of a dense operation."""
    if len(ins.operands) <= _SELECTOR:
        ins.unmodelled("a sparse operand A without metadata and selector")
    read, selector = ins.read(_METADATA, np.uint32), ins.immediate(_SELECTOR)
    count = 1 if BITS[type_] == 8 else 2
    if not 0 <= selector < count:
        raise ins.trap("operand", f"the sparsity selector must be 0..{count - 1}, got {selector}")
    ins.operands = ins.operands[:_METADATA] + ins.operands[_SELECTOR + 1 :]
    return lambda warp: Metadata(read(warp), selector)

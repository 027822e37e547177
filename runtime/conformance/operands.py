"""Operands of a case in torch's memory: laid out as asked, NaN around them, watched for writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..element_types import INTEGERS, torch_dtype
from ..judge.reference import to_float64
from .cases import Layout

ALIGNMENT_BYTES = 256
POISON = -0x5B
"""Around operands and in outputs of integers, which have no NaN."""


@dataclass(frozen=True)
class Placed:
    """A matrix in memory of its own.

    view: the tensor. storage: all elements that it lies in, as integers of their bits. before:
    a copy of them. dtype: a manifest's name.
    """

    view: Any
    storage: Any
    before: Any
    dtype: str

    def values(self) -> np.ndarray:
        """The elements in float64."""
        return to_float64(self.view.cpu(), self.dtype)

    def is_untouched(self) -> bool:
        """Whether every bit in and around the matrix is as it was."""
        return bool((self.storage == self.before).all())

    def is_untouched_around(self) -> bool:
        """Whether every bit around the matrix is as it was."""
        after = self.storage.clone()
        self._matrix_in(after).copy_(self._matrix_in(self.before))
        return bool((after == self.before).all())

    def _matrix_in(self, bits: Any) -> Any:
        """The elements of the matrix in a copy of the storage."""
        return bits.as_strided(self.view.shape, self.view.stride(), self.view.storage_offset())


def place(values: np.ndarray | tuple[int, int], dtype: str, layout: Layout, device: str) -> Placed:
    """A matrix with these values in `dtype` (or only a shape: poison), as `layout` says.

    Of an expanded axis, the values of its first element stand for all.
    """
    import torch

    shape = values if isinstance(values, tuple) else values.shape
    strides, extent = _strides(shape, layout)
    count = layout.offset + extent + layout.padding + ALIGNMENT_BYTES
    storage = torch.full((count,), _poison(dtype), dtype=torch_dtype(dtype), device=device)
    view = storage.as_strided(shape, strides, layout.offset)
    if not isinstance(values, tuple):
        _fill(view, values, layout)
    bits = storage.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[storage.element_size()])
    return Placed(view, bits, bits.clone(), dtype)


def empty_output(shape: tuple[int, int], dtype: str, padding: int, device: str) -> Placed:
    """A matrix of poison for an output; `padding` elements of poison between its rows."""
    return place(shape, dtype, Layout(padding=padding, offset=64), device)


def poison_memory(shape: tuple[int, int], device: str) -> None:
    """Give back poisoned memory of the size that a result has, for an allocator to hand out."""
    import torch

    count = shape[0] * shape[1]
    for dtype in (torch.float32, torch.bfloat16):
        torch.full((count,), float("nan"), dtype=dtype, device=device)


def _poison(dtype: str) -> float:
    if dtype == "u8":
        return 0xA5
    return POISON if dtype in INTEGERS else float("nan")


def _strides(shape: tuple[int, ...], layout: Layout) -> tuple[tuple[int, int], int]:
    """Strides in elements, and how many elements there are from the first to the last."""
    rows, columns = shape
    inner, outer = (columns, rows) if layout.order == "row" else (rows, columns)
    leading = inner + layout.padding
    strides = (leading, 1) if layout.order == "row" else (1, leading)
    if layout.expanded is not None:
        strides = (0, strides[1]) if layout.expanded == 0 else (strides[0], 0)
    return strides, max(leading, 1) * max(outer, 1)


def _fill(view: Any, values: np.ndarray, layout: Layout) -> None:
    import torch

    given = torch.from_numpy(np.ascontiguousarray(values))
    if layout.expanded is not None and view.numel():
        view, given = (each.narrow(layout.expanded, 0, 1) for each in (view, given))
    view.copy_(given.to(torch.float32).to(view.dtype) if view.is_floating_point() else given)

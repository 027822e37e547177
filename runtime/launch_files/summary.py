"""Outputs in a few numbers, and as .npy files."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .element_types import ELEMENT_TYPES

NAMES = {kind.dtype: name for name, kind in ELEMENT_TYPES.items()}


@dataclass(frozen=True)
class Summary:
    """One output. least, greatest, mean: of its elements that are not NaN, None without any."""

    name: str
    dtype: str
    shape: list[int]
    least: float | int | None
    greatest: float | int | None
    mean: float | None
    nans: int
    path: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        words = {"least": "min", "greatest": "max", "nans": "nan_count"}
        return {words.get(name, name): value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        shape = "×".join(map(str, self.shape))
        text = f"{self.name} ({self.dtype} {shape}): {self._values()}, {self.nans} NaN"
        return f"{text}, written to {self.path}" if self.path else text

    def _values(self) -> str:
        if self.mean is None:
            return "no number"
        return f"min {self.least:g}, max {self.greatest:g}, mean {self.mean:g}"


def summarize(name: str, array: np.ndarray, path: str | None = None) -> Summary:
    """Count what an output holds; NaN is left out of min, max and mean."""
    numbers = array.reshape(-1)
    if array.dtype.kind not in "iu":
        numbers = numbers.astype(np.float64)
        numbers = numbers[~np.isnan(numbers)]
    nans = array.size - numbers.size
    least = greatest = mean = None
    if numbers.size:
        least, greatest = numbers.min().item(), numbers.max().item()
        with np.errstate(all="ignore"):
            mean = float(numbers.mean(dtype=np.float64))
    dtype = NAMES[array.dtype]
    return Summary(name, dtype, list(array.shape), least, greatest, mean, nans, path)


def npy_bytes(array: np.ndarray) -> bytes:
    """The content of a .npy file; types that numpy lacks as unsigned integers of their width."""
    if array.dtype.kind not in "iuf" or array.dtype.type.__module__ != "numpy":
        array = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()

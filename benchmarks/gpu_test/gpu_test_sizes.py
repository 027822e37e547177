"""The sizes that a call says of a kernel for any M or batch, or both, in gpu_test.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Size = int | Sequence[int]  # M, the batch, or both


def of_size(kernel: Any, size: Size | None) -> Any:
    """A kernel for any M or batch for one; another one as it is."""
    return kernel if size is None else kernel.at(*values_of(size))


def values_of(size: Size | None) -> Sequence[int]:
    """M, the batch, or both."""
    return [] if size is None else [size] if isinstance(size, int) else size


def is_nothing(size: Size | None) -> bool:
    """Whether a call has no rows, or no matrices."""
    return 0 in values_of(size)

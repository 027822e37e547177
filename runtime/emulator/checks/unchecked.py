"""State that keeps no marks, for a launch with check="off": what it is asked, it finds in order.

Only rules about order and initialisation go. What execution itself needs stays: bounds, alignment,
address spaces, mbarrier phases, descriptors, allocations, convergence.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from ..interface import Warp
from ..tensor.spans import Access
from ..tensor.tensor_engine import TensorEngine
from ..tensor.tensor_fences import Fences
from ..tensor.tensor_memory import TensorMemory
from .proxy import BusySource, SharedProxy


class UncheckedProxy(SharedProxy):
    """Shared memory that anybody may touch at any time through any proxy."""

    def stored(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        if self.boxes is not None:
            self.boxes.forget(offsets, size)

    def tag(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int) -> None:
        pass

    def written_late(self, offsets: np.ndarray, size: int) -> None:
        pass

    def touched(self, offsets: np.ndarray, size: int, access: str) -> None:
        pass

    def fence(self, warp: Warp, mask: np.ndarray) -> None:
        pass

    def source(self, low: int, high: int, warp: Warp, lane: int) -> BusySource:
        """Never busy."""
        return BusySource(self, low, high, warp, lane)

    def response_written(self, offset: int) -> None:
        pass

    def barrier_made(self, offset: int) -> None:
        pass

    def barrier_ended(self, offset: int) -> None:
        pass


class UncheckedTensorMemory(TensorMemory):
    """Tensor memory whose poison may be read."""

    def require_written(self, rows: slice, columns: slice, what: str) -> None:
        pass

    def require_factors(self, columns: slice, used: tuple[int, int, int], what: str) -> None:
        pass

    def gather(self, lanes: np.ndarray, columns: np.ndarray, what: str) -> np.ndarray:
        return self.words[lanes, columns]


class UncheckedFences(Fences):
    """Fences between warps that nobody needs."""

    def completed(self, access: Access, **how: Any) -> None:
        pass

    def before(self, warp: tuple[int, int]) -> None:
        pass

    def released(self, warp: tuple[int, int]) -> None:
        pass

    def synchronised(self, warp: tuple[int, int]) -> None:
        pass

    def acquired(self, warp: tuple[int, int]) -> None:
        pass


class UncheckedTensorEngine(TensorEngine):
    """A tensor core whose accesses may meet; products are still tracked, copies queue behind."""

    def __init__(self, poison: np.ndarray, rng: random.Random, warn: Callable[[str, str], None]):
        super().__init__(poison, rng, warn)
        self.memory = UncheckedTensorMemory(poison, rng.choice)
        self.fences = UncheckedFences(warn)

    def track(self, access: Access) -> None:
        if access.op is not None:
            super().track(access)

    def require_ordered(self, *what: Any, **how: Any) -> None:
        pass

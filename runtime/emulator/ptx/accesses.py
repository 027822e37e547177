"""What an instruction of a thread moves, noted when it is decoded, for who wants to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..interface import Warp

READ, WRITE = ("read",), ("write",)
BOTH = ("read", "write")


@dataclass(frozen=True)
class MemoryAccess:
    """space: as the instruction names it, `generic` without. directions: of `read`, `write`.

    size: bytes of each lane's access; address: a function warp → uint64[32] of their addresses,
    None where `size` is of the whole warp. lanes: bool[32] that have an address, None for all;
    to_rows: of stmatrix, makes the words of the eight rows at such addresses of a register.
    """

    space: str
    directions: tuple[str, ...]
    size: int
    address: Callable[[Warp], np.ndarray] | None = None
    lanes: np.ndarray | None = None
    to_rows: Callable[[np.ndarray], np.ndarray] | None = None

"""Which lane a lane of `shfl` reads (PTX ISA §9.7.9.6)."""

from __future__ import annotations

import numpy as np

from .lanes import LANE_IDS

_LANES = LANE_IDS.astype(np.int64)


def shuffle_source(
    mode: str, b: np.ndarray | np.int64, c: np.ndarray | np.int64
) -> tuple[np.ndarray, np.ndarray]:
    """(the lane that each reads, whether it is in range) by the formulas of the ISA.

    mode: `up`, `down`, `bfly` or `idx`; b, c: int64 operands of the lanes. Out of range a lane
    reads its own value.
    """
    bounds, segment, amount = c & 0x1F, c >> 8 & 0x1F, b & 0x1F
    lowest = _LANES & segment
    highest = lowest | bounds & ~segment
    if mode == "up":
        source = _LANES - amount
        inside = source >= highest
    else:
        others = {"down": _LANES + amount, "bfly": _LANES ^ amount}
        source = others.get(mode, lowest | amount & ~segment)
        inside = source <= highest
    return np.where(inside, source, _LANES), inside

"""Which lanes of a warp an instruction needs: one of them, or all 32 that have not exited."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import Trap, lane_text
from ...interface import Warp
from ...ptx.decode import Decoded
from ...ptx.lanes import lanes_in
from ...ptx.registry import Blocked

_ALL_LANES = 0xFFFFFFFF


def one_lane(mask: np.ndarray, name: str) -> int:
    """The only active lane; a Trap if several lanes would issue the operation."""
    lanes = lanes_in(mask)
    if len(lanes) != 1:
        raise Trap(
            "convergence",
            f"{name} is issued by one thread, got {len(lanes)} active lanes: each of them would "
            f"issue its own operation",
        )
    return lanes[0]


def take_aligned(ins: Decoded) -> Callable:
    """Consume ``.sync.aligned`` and return the convergence check of `all_threads`."""
    ins.required(("sync",))
    ins.required(("aligned",))
    return all_threads(ins)


def all_threads(ins: Decoded) -> Callable:
    """The convergence check of the whole warp, for what needs all 32 threads of it.

    All of them must be there: the behaviour is undefined once one of them has exited.
    """
    converged = ins.whole_warp()

    def check(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if warp.live != _ALL_LANES:
            gone = lane_text(~warp.live & _ALL_LANES)
            raise Trap(
                "convergence",
                f"{ins.mnemonic} needs all 32 threads of the warp, lanes {gone} are not alive",
            )
        return converged(warp, mask)

    return check

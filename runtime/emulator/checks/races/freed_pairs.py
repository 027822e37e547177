"""Tensor memory that is freed, or the right to allocate that is given up, while it may still be
needed.

PTX does not say what happens if one CTA of a pair frees what the other may not have allocated yet.
On GPUs with `sm_103a` the launch ends with an error (cutlass#3435), unless the cluster meets in
between. So this is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from .actor import line_of
from .clock import Event

_TAKEN = "tensor memory taken"


def note_taken(cta: Cta, event: Event, columns: int, happened: np.ndarray) -> None:
    """Notes that a warp of a CTA has been given tensor memory.

    Traps if another warp was given another size and neither allocation is ordered behind the other:
    in one of the two orders the sizes increase, which PTX ISA section 9.7.16.7.1 forbids.
    """
    taken = cta.state(_TAKEN, dict)
    if _unknown((other for other in taken if taken[other] != columns), happened):
        raise Trap(
            "tmem",
            f"nothing orders this tcgen05.alloc of {columns} columns and one of another size by"
            " another warp, and sizes may not increase; let one warp allocate, the largest first",
        )
    taken[event] = columns


def _unknown(taken: Iterable[Event], happened: np.ndarray) -> bool:
    """Whether there are allocations that a row of a clock does not know."""
    return any(int(happened[component]) < time for component, time in taken)


def check_permit(warp: Warp, happened: np.ndarray) -> None:
    """Traps if a warp gives up its CTA's right to allocate while another warp may still use it.

    Nothing may be allocated afterwards (PTX ISA section 9.7.16.7.1).
    """
    if _unknown(warp.cta.state(_TAKEN, dict), happened):
        raise Trap(
            "tmem",
            "nothing orders this tcgen05.relinquish_alloc_permit behind a tcgen05.alloc of another"
            " warp, which is illegal after it; let the warp that allocates relinquish",
        )


def check_freed(warp: Warp, peer: Cta, happened: np.ndarray) -> None:
    """Warns if a warp frees the tensor memory of a pair without knowing that the peer was given it.

    happened: the row of the warp's clock.
    """
    taken = peer.state(_TAKEN, dict)
    if taken and not _unknown(taken, happened):
        return
    warp.launch.warn(
        "early-dealloc",
        f"ptx:{line_of(warp)}: nothing orders this tcgen05.dealloc behind the tcgen05.alloc of the"
        f" other CTA of the pair, cta {peer.index}: launches have failed of it; let the cluster"
        " meet between the two",
    )

"""Tensor memory of pairs that one CTA gives back while the other may still take it.

PTX says nothing of it. On GPUs of `sm_103a` the launch ends with an error (cutlass#3435), unless
the cluster meets between the two. So this is told of.
"""

from __future__ import annotations

import numpy as np

from ...interface import Cta, Warp
from .actor import line_of
from .clock import Event

_TAKEN = "tensor memory taken"


def note_taken(cta: Cta, event: Event) -> None:
    """A warp of a CTA has been given tensor memory."""
    cta.state(_TAKEN, list).append(event)


def check_freed(warp: Warp, peer: Cta, happened: np.ndarray) -> None:
    """Warn where a warp that gives a pair's back does not know that the peer was given it.

    happened: the row of the warp's clock.
    """
    taken = peer.state(_TAKEN, list)
    if taken and all(int(happened[component]) >= time for component, time in taken):
        return
    warp.launch.warn(
        "early-dealloc",
        f"ptx:{line_of(warp)}: nothing orders this tcgen05.dealloc behind the tcgen05.alloc of the"
        f" other CTA of the pair, cta {peer.index}: launches have failed of it; let the cluster"
        " meet between the two",
    )

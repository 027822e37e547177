"""Faults that are none: nothing that the kernel does depends on what they take away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Harmless(NamedTuple):
    """Why a rule makes no fault there, and how often in which kernels."""

    why: str
    kernels: Mapping[str, int]


HARMLESS: Mapping[str, Harmless] = {
    "wgmma.wait_group is left out": Harmless(
        "Another wait follows, or came before, with no MMA between them.",
        {
            "stores apart": 1,
            "groups of equal height": 1,
            "a gradient of weights": 2,
            "one slot": 1,
            "roles": 2,
            "roles in a cluster": 2,
            "consumers in turns": 2,
            "K over a grid": 2,
            "K over a cluster": 2,
            "groups": 1,
            "scales of 128": 5,
            "weights of 4 bits": 3,
            "rows of any number": 2,
            "few rows of any number": 2,
            "exchanged": 2,
        },
    ),
    "wgmma.fence is left out": Harmless(
        "MMAs that add to the same registers in the same shape need no fence between them.",
        {
            "stores apart": 1,
            "groups of equal height": 1,
            "a gradient of weights": 1,
            "roles": 1,
            "roles in a cluster": 1,
            "consumers in turns": 2,
            "K over a grid": 1,
            "K over a cluster": 1,
            "groups": 1,
            "scales of 128": 1,
            "rows of any number": 1,
            "few rows of any number": 1,
            "exchanged": 1,
        },
    ),
    "mbarrier.arrive is left out": Harmless(
        "Nobody fills the slot of the last K step again.",
        {
            "a gradient of weights": 1,
            "nvfp4 in pairs": 1,
            "roles": 1,
            "K over a grid": 1,
            "K over a cluster": 1,
            "weights of 4 bits": 1,
            "rows of any number": 1,
            "few rows of any number": 1,
            "exchanged": 1,
        },
    ),
    "cp.async.bulk.wait_group is left out": Harmless(
        "A first piece, which no store has read before.",
        {"roles": 1, "roles in a cluster": 1, "consumers in turns": 1},
    ),
    "bar.sync is left out": Harmless(
        "Nothing is shared before it, or another barrier of the same threads orders the same.",
        {
            "roles": 1,
            "roles in a cluster": 1,
            "consumers in turns": 1,
            "rows of any number": 1,
            "mma.sync": 1,
            "tcgen05": 1,
            "launch control": 1,
        },
    ),
    "nobody waits for an mbarrier": Harmless(
        "The end of a cluster: its barrier orders what the wait does. Or sums that were free.",
        {"nvfp4 in pairs": 1, "roles in a cluster": 2},
    ),
    "a wait is for the other phase": Harmless(
        "The end of a cluster: its barrier orders what the wait does.", {"roles in a cluster": 1}
    ),
    "barrier.cluster.wait is left out": Harmless(
        "The end of a cluster: waits for every slot order what it does.", {"roles in a cluster": 1}
    ),
    "setmaxnreg is left out": Harmless(
        "PTX has registers without number: who asks for no more is only slow, or does not compile.",
        {"stores apart": 1, "consumers in turns": 2},
    ),
    "lanes do not meet before one of them goes on for all": Harmless(
        "A warp reads tensor memory together, and nobody fills the slot of the last K step again.",
        {
            "nvfp4 in pairs": 1,
            "weights of 4 bits": 1,
            "tcgen05": 1,
            "tcgen05 in pairs": 1,
            "launch control": 1,
            "mxfp8": 1,
        },
    ),
    "st.shared is left out": Harmless(
        "There are as many rows as a box has, so that nothing is cleared.",
        {"rows of any number": 2},
    ),
    "fence.proxy.async is left out": Harmless(
        "There are as many rows as a box has, so that nothing is cleared.",
        {"rows of any number": 1},
    ),
    "tcgen05.fence is left out": Harmless(
        "No tensor memory is handed over there, or by release and acquire.",
        {"nvfp4 in pairs": 8, "tcgen05": 6, "tcgen05 in pairs": 6, "launch control": 6, "mxfp8": 7},
    ),
    "1 operations may be under way instead of 0": Harmless(
        "Another wait for all of them follows, with no MMA between them.",
        {
            "stores apart": 1,
            "groups of equal height": 1,
            "a gradient of weights": 2,
            "nvfp4 in pairs": 1,
            "one slot": 1,
            "roles": 2,
            "roles in a cluster": 2,
            "consumers in turns": 3,
            "K over a grid": 2,
            "K over a cluster": 2,
            "groups": 1,
            "scales of 128": 5,
            "weights of 4 bits": 2,
            "rows of any number": 2,
            "few rows of any number": 2,
            "exchanged": 2,
        },
    ),
    "2 operations may be under way instead of 1": Harmless(
        "Nothing is under way ahead of a first piece, and sums that are read were waited for.",
        {
            "roles": 1,
            "roles in a cluster": 1,
        },
    ),
    "3 operations may be under way instead of 2": Harmless(
        "All of them have been waited for just before.", {"weights of 4 bits": 1}
    ),
    "a barrier counts one arrival more": Harmless(
        "Nobody waits for it in as few steps.", {"nvfp4 in pairs": 2, "a gradient of weights": 1}
    ),
    "cp.async.commit_group is left out": Harmless(
        "Threads copy by loads and stores there, and nothing is under way.", {"nvfp4 in pairs": 1}
    ),
    "cp.async.wait_group is left out": Harmless(
        "Threads copy by loads and stores there, and nothing is under way.", {"nvfp4 in pairs": 1}
    ),
    "stmatrix is left out": Harmless("No group has as many rows.", {"groups of equal height": 2}),
}

"""Checks of the roles of a kernel: their names and their warps.

roles       they have names of their own, follow each other from warp 0 on, each with the named
            barrier of its number, and all threads of a CTA are in one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....dialects.sm.threads import WarpsOp
from ....dialects.target import WARP_THREADS
from ....dialects.tile import KernelOp
from ...base import refused


def check_roles(kernel: KernelOp, roles: Sequence[WarpsOp]) -> None:
    """All of these rules, of a kernel that has roles."""
    first = 0
    for number, role in enumerate(roles, 1):
        check_place(role, first, number)
        first += role.warps.value
    check_names(roles)
    if roles:
        check_threads(kernel, first)


def check_place(role: WarpsOp, first: int, barrier: int) -> None:
    """Whether a role begins at warp `first` and has the named barrier of that number."""
    got = (role.first.value, role.barrier.value)
    if got != (first, barrier):
        raise refused(
            role,
            f"roles: must follow each other, here from warp {first} on with barrier {barrier}, got "
            f"warp {got[0]} and barrier {got[1]}; number them in order",
        )


def check_names(roles: Sequence[Any]) -> None:
    """Whether no two roles have one name."""
    names = [role.agent.value for role in roles]
    for number, role in enumerate(roles):
        if role.agent.value in names[:number]:
            raise refused(role, f"roles: must have names of their own, got {names}; rename it")


def check_threads(kernel: KernelOp, warps: int) -> None:
    """Whether a CTA's threads are those of the warps of its roles."""
    threads = kernel.threads.value
    if threads != WARP_THREADS * warps:
        raise refused(
            kernel,
            f"roles: threads must be those of the {warps} warps of its roles, got {threads}; "
            f"make it {WARP_THREADS * warps}",
        )

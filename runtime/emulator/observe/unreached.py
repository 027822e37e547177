"""Instructions that order threads or operations, and that no warp of a launch has executed.

A launch with one step along K, say, shows nothing of the waits that later steps need: a mistake in
one of those is seen by a launch that reaches it alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ptx.program import Program

_ORDERING = ("bar.", "barrier.", "mbarrier.", "fence.", "membar.", "griddepcontrol.",
             "cp.async.wait", "cp.async.mbarrier", "cp.async.bulk.wait", "wgmma.fence",
             "wgmma.wait", "tcgen05.wait", "tcgen05.fence", "tcgen05.commit")  # fmt: skip
_ORDERS = {"acquire", "release", "acq_rel"}


def unreached(program: Program, executed: Sequence[int]) -> dict[int, str]:
    """By PTX line, their texts; executed: how often each instruction ran."""
    never = (each for each, count in zip(program.source, executed, strict=True) if not count)
    return {each.line: each.text for each in never if _orders(each.opcode)}


def _orders(opcode: str) -> bool:
    return opcode.startswith(_ORDERING) or not _ORDERS.isdisjoint(opcode.split("."))

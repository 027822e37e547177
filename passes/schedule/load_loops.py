"""The K loop in which a load role fills slots."""

from __future__ import annotations

from ...dialects.mlir import scf
from ...dialects.pipe import CommitOp, RoleOp
from ...dialects.tile import KernelOp
from ..base import refused, walk
from .warp_specialization import LOAD


def load_loop(kernel: KernelOp, name: str) -> scf.ForOp:
    """The loop along K of the role that loads, for the pass `name`."""
    roles = [role for role in walk(kernel, RoleOp) if role.agent.value == LOAD]
    if not roles:
        raise refused(kernel, f"{name}: needs a load role, got none; run warp-specialization")
    loops = [loop for loop in walk(roles[0], scf.ForOp) if _commits(loop)]
    if len(loops) != 1 or len(_commits(loops[0])) != len(walk(roles[0], CommitOp)):
        rule = f"{name}: the load role must fill slots in one loop along K"
        raise refused(roles[0], f"{rule}, got {len(loops)}; leave {name} out")
    return loops[0]


def _commits(loop: scf.ForOp) -> list[CommitOp]:
    return [op for op in walk(loop, CommitOp) if op.operation.parent == loop.operation]

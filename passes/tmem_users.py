"""Which warps of a kernel use tensor memory, and which start before it is allocated."""

from __future__ import annotations

from typing import NamedTuple

from ..dialects.mlir import ir
from ..dialects.sm.memory import TensorMemoryOp
from ..dialects.sm.threads import NAMED_BARRIERS, WarpsOp
from ..dialects.target import WARP_THREADS
from ..dialects.tile import KernelOp
from .base import visit_all, walk


class TmemMeeting(NamedTuple):
    """Where those meet who use tensor memory: at named `barrier`, `threads` of them.

    `apart` has the bits of the warps that are not among them. All are 0 where no warp is apart.
    """

    barrier: int
    threads: int
    apart: int

    @staticmethod
    def of(kernel: KernelOp, memory: TensorMemoryOp) -> TmemMeeting:
        """All warps but those of roles that do nothing with it, at the barrier after the roles'.

        The first warp, which allocates, is never apart; nor is one where no barrier is left.
        """
        roles = walk(kernel, WarpsOp)
        columns = _made_of(memory.memory)
        idle = [role for role in roles if not _uses(role, columns)]
        barrier = len(roles) + 1
        if not idle or barrier >= NAMED_BARRIERS or any(role.first.value == 0 for role in idle):
            return TmemMeeting(0, 0, 0)
        apart = sum(((1 << role.warps.value) - 1) << role.first.value for role in idle)
        threads = kernel.threads.value - WARP_THREADS * apart.bit_count()
        return TmemMeeting(barrier, threads, apart)


def _made_of(value: ir.Value) -> set[ir.Value]:
    """The value, and all that is made of it."""
    found = {value}
    for use in value.uses:
        for result in use.owner.results:
            found |= _made_of(result)
    return found


def _uses(role: WarpsOp, values: set[ir.Value]) -> bool:
    """Whether an op of the role has one of them as an operand."""
    used = False

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal used
        used = used or any(operand in values for operand in operation.operands)
        return ir.WalkResult.INTERRUPT if used else ir.WalkResult.ADVANCE

    visit_all(role, visit)
    return used

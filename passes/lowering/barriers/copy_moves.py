"""What stands before each end of a ring that threads fill for themselves: how many of its slots are
filled and not waited for yet.

A thread's copies are done in the order of their groups, one a slot. So whoever waits for a slot
lets as many groups be under way as were filled after it. Loops are not run: one that fills as many
slots as it waits for changes nothing, and of another the number of its iterations tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....dialects.mlir import ir, scf
from ....dialects.pipe import AcquireOp, CommitOp, ReleaseOp, WaitOp
from ....dialects.sm.ring_memory import CopyRingOp
from ...clone import iterations_of
from ...thread_rules import members

ENDS = (AcquireOp, CommitOp, WaitOp, ReleaseOp)


@dataclass
class Moves:
    """By the op: `pending` groups that a wait may leave under way; whether all threads `meet`
    before a slot is filled, and whether an `empty` group goes after a release.

    The meeting of the wait before says that all have read the slots released by then, which are
    all but the one that is being read. An empty group stands for one that nobody fills any more.
    """

    ring: ir.Value
    stages: int
    pending: dict[ir.Operation, int] = field(default_factory=dict)
    meets: dict[ir.Operation, bool] = field(default_factory=dict)
    empty: dict[ir.Operation, bool] = field(default_factory=dict)
    ahead: int = 0

    def walk(self, block: ir.Block, draining: bool = False, known: bool = True) -> None:
        """Note the ops of a block in program order."""
        for op in members(block):
            if isinstance(op, scf.ForOp):
                self._loop(op)
            elif not self._is_end(op):
                continue
            elif isinstance(op, AcquireOp):
                self.meets[op.operation] = not known or self.ahead > self.stages - 2
            elif isinstance(op, CommitOp):
                self.ahead += 1
            elif isinstance(op, WaitOp):
                self.pending[op.operation] = self.ahead - 1 if known else 0
                self.ahead -= 0 if draining else 1
            elif isinstance(op, ReleaseOp):
                self.empty[op.operation] = draining

    def _loop(self, loop: scf.ForOp) -> None:
        fills, waits = self._counts(loop.body)
        before, times = self.ahead, len(iterations_of(loop) or ())
        if fills == waits:
            self.walk(loop.body)
        elif not waits:
            self.ahead += fills * (times - 1)  # the last iteration is the one with the fewest empty
            self.walk(loop.body)
        else:
            self.walk(loop.body, draining=not fills, known=not fills)
        self.ahead = before + (fills - waits) * times

    def _is_end(self, op: Any) -> bool:
        return isinstance(op, ENDS) and op.ring == self.ring

    def _counts(self, block: ir.Block) -> tuple[int, int]:
        """Slots that a block fills, and those that it waits for."""
        fills = waits = 0
        for op in members(block):
            if isinstance(op, scf.ForOp):
                times = len(iterations_of(op) or ())
                inner = self._counts(op.body)
                fills, waits = fills + times * inner[0], waits + times * inner[1]
            elif self._is_end(op):
                fills += isinstance(op, CommitOp)
                waits += isinstance(op, WaitOp)
        return fills, waits


def moves_of(op: CopyRingOp) -> Moves:
    """The moves on a ring, by the whole kernel."""
    moves = Moves(op.ring, op.ring.type.stages)
    block: Any = op.operation.block
    moves.walk(block)
    return moves

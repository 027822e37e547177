"""tcgen05.shift: rows of a matrix in tensor memory move down by one (PTX ISA §9.7.16.9.3).

The shape is `.31x256b` (§9.7.16.2.3): of the 32 lanes from the address on, each but the last takes
the 32 bytes of the lane behind it, and the last keeps its own. Which way "down" is, PTX leaves
open; NVIDIA's example `1cta_mma_a_from_tmem.py` (CuTe DSL, experimental primitives) has observed it
on a B200 for `.ashift`. Issued behind a tcgen05.mma and before a tcgen05.mma or
tcgen05.cp.4x256b, it is executed in that order (§9.7.16.6.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.engine import EngineOp, Move, Moves
from ...machine.shared_access import count_event
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...tensor.spans import Access, Claim, Span
from ...tensor.tensor_engine import pair_of, tensor_engine, track
from ...tensor.tensor_memory import LANES, QUARTER, split_address
from ..threads.convergence import one_lane
from .order import TENSOR_STREAM, take_group

_NAME = "tcgen05.shift"
_COLUMNS = 8
"""32 bytes."""
_UNORDERED = ("tcgen05.ld", "tcgen05.st", "tcgen05.cp", _NAME)


@dataclass(frozen=True)
class Shift:
    """One issued operation, in the CTA or the pair."""

    ctas: tuple[Cta, ...]
    span: Span

    def moves(self) -> Moves:
        """For profiles."""
        moved = 4 * _COLUMNS * (QUARTER - 1) * len(self.ctas)
        return Move("tensor", "read", moved), Move("tensor", "write", moved)

    def run(self) -> None:
        span = self.span
        rows, columns = slice(span.lane, span.lane_end), slice(span.column, span.column_end)
        for cta in self.ctas:
            tensor_engine(cta).memory.shift_down(rows, columns)


@instruction("tcgen05.shift", section="9.7.16.9.3")
def build_shift(ins: Decoded) -> Step:
    """tcgen05.shift.cta_group.down [taddr]."""
    group = take_group(ins)
    ins.required(("down",))
    ins.finish_modifiers()
    ins.expect_operands(1)
    address = ins.address(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        thread = one_lane(mask, _NAME)
        lane, column = split_address(int(address(warp)[thread]))
        if lane % QUARTER or lane >= LANES:
            raise Trap("tmem", f"tcgen05.shift must start at a multiple of {QUARTER} lanes below"
                               f" {LANES}, got {lane}")  # fmt: skip
        span = Span(lane, lane + QUARTER, column, column + _COLUMNS)
        _submit(warp, thread, Shift(pair_of(warp.cta, group), span))

    return step


def _submit(warp: Warp, lane: int, shift: Shift) -> None:
    leader = tensor_engine(shift.ctas[0])
    behind = () if leader.last is None or leader.last.done else (leader.last,)
    name = "shift of tensor memory"
    op = EngineOp(
        name, shift.run, behind, agent="tensor core", touches=shift.ctas, moves=shift.moves
    )
    op.stream = (TENSOR_STREAM, lane)
    for cta in shift.ctas:
        _order(cta, shift, op, warp)
    leader.copies.append(op)
    leader.shifts = [*(each for each in leader.shifts if not each.done), op]
    tensor_engine(warp.cta).note_issue(warp.index, lane, warp.launch.engines.submit(op))
    count_event(warp.cta, "tensor memory shifts")


def _order(cta: Cta, shift: Shift, op: EngineOp, warp: Warp) -> None:
    engine, events = tensor_engine(cta), cta.launch.events
    engine.memory.check_columns(shift.span.column, _COLUMNS, _NAME)
    claim = Claim(shift.span, _NAME, _UNORDERED)
    events.columns_claimed(cta, claim)
    events.columns_used(cta, warp, claim, True)
    line = warp.program.source[warp.split.pc].line
    track(cta, Access(_NAME, shift.span, line, warp.index, op, rank=warp.cta.rank))

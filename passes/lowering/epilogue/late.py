"""Delays constants of an epilogue until its threads have synchronised.

    sm.named_barrier             holds = sm.any_barrier true
    …                            late = arith.select(holds, 13.8, 0)
    tile.apply_epilogue          tile.apply_epilogue
      v = minimumf(x, 13.8)        v = minimumf(x, late)

ptxas moves arithmetic up across barriers, arrivals and branches, as far as the wait for the last
MMA: threads then compute a whole tile before they free its last slot and store its first piece. It
cannot know that the flag holds in one of the threads, which it does in all of them. So what has
such a number stays after the meeting, and each piece is computed where it is stored. It costs no
instruction for an element: a register stands where a number stood. Functions that stay exact have
numbers of their own, which come later; what they are of is multiplied by a late 1 if it waits for
nothing.

Elements that are computed side by side leave the MMAs of another consumer few cycles of the
registers. Where consumers take turns, functions of many FMA are therefore left to `-O1` of ptxas,
which computes one after the other, if the main loop is long enough to hide them.
"""

from __future__ import annotations

import math
from typing import Any

from ....dialects import sm
from ....dialects.epilogue import FUNCTIONS
from ....dialects.mlir import arith, ir
from ....dialects.target import WARPGROUP_THREADS, Target
from ....dialects.tile import AccumulatorOp, KernelOp, MmaOp
from ....dialects.tile.pieces import ApplyEpilogueOp
from ... import build
from ...base import walk
from ...schedule.ping_pong import AGENTS
from .values import constant_of, literal

Numbers = dict[str, ir.Value]
"""Those of a meeting, by their digits, which tell the sign of 0."""


LATE_MEETING = ".red.or."
"""Stands in the LLVM IR and PTX of a kernel with late numbers, in no other whose consumers take
turns."""
SERIAL = 3.1
"""Cycles of an op of one element where it waits for the one before, by SASS at `-O1`."""
EXACT_OPS = 22
"""About those of a function that stays exact."""
MUFU_CYCLES = 8
"""Of a warp's approximate function: 16 lanes of a multiprocessor a cycle, of 4 warps."""
DENSE = 1.25
"""Times as many ops as cycles of approximate functions: what leaves no cycle free."""
MMA_BYTES = 4096
"""Products of a cycle of a multiprocessor, times the bytes of an element."""
HIDDEN = 0.85
"""Of the main loop of the other consumer, in which an epilogue is hidden: an H200 took 1.5 to 4 %
less with GELU at -O1 for a K of 1024 to 4096, and 3 % more for one of 768."""
SHORT = 100
"""Cycles of a main loop for each element of a thread: an H200 took 3 to 4 % less with GELU by a
reciprocal, side by side, for a K of 768 and 1024, and 0.5 to 1 % more for one of 2048 and more than
with powers alone at -O1. Where the consumers share a tile it took up to 1 % more."""


def make_numbers_late(kernel: KernelOp) -> None:
    """Let the arithmetic of each piece of a staged store wait for the meeting before it."""
    if _left_in_order(kernel):
        return
    blocks = {op.operation.block: None for op in walk(kernel, ApplyEpilogueOp)}
    for block in blocks:
        meeting: Any = None
        numbers: Numbers = {}
        for op in list(block.operations):
            if isinstance(op, sm.NamedBarrierOp | sm.PartBarrierOp):
                meeting, numbers = op, {}
            elif isinstance(op, ApplyEpilogueOp) and meeting is not None:
                meeting = _late_in(op.epilogue.blocks[0], meeting, numbers)


def _late_in(region: ir.Block, meeting: Any, numbers: Numbers) -> Any:
    """Replace the first numbers that sums and what is made of them meet; gives the meeting."""
    waiting: set[ir.Value] = set()
    for op in list(region.operations):
        operands = list(op.operation.operands)
        if not waiting.intersection(operands):
            found = _number_of(op)
            if found is not None:
                meeting, (place, number) = _flagged(meeting), found
                op.operation.operands[place] = _late(number, meeting, numbers)
            elif op.operation.name in FUNCTIONS and str(operands[0].type) == "f32":
                meeting = _flagged(meeting)
                with ir.InsertionPoint(op), op.location:
                    one = _late(1.0, meeting, numbers)
                    op.operation.operands[0] = arith.mulf(operands[0], one)
            else:
                continue
        waiting.update(op.operation.results)
    return meeting


def _number_of(op: ir.OpView) -> tuple[int, float] | None:
    """Which operand of an op is a number of f32, beside one that is none, and the number."""
    operands = list(op.operation.operands)
    numbers = [
        (place, number)
        for place, each in enumerate(operands)
        if (number := constant_of(each)) is not None
    ]
    if len(numbers) == len(operands):
        return None
    of_f32 = (each for each in numbers if str(operands[each[0]].type) == "f32")
    return next(of_f32, None)


def _flagged(meeting: Any) -> Any:
    """The meeting, of which threads learn that a flag holds in one of them."""
    if isinstance(meeting, sm.AnyBarrierOp | sm.AnyPartBarrierOp):
        return meeting
    how = {"id": meeting.id, "threads": meeting.threads}
    with ir.InsertionPoint(meeting), meeting.location:
        if isinstance(meeting, sm.PartBarrierOp):
            how["parts"] = meeting.parts
            made = sm.AnyPartBarrierOp.of(build.true(), meeting.part, **how)
        else:
            made = sm.AnyBarrierOp.of(build.true(), **how)
    meeting.operation.erase()
    return made


def _late(number: float, meeting: Any, numbers: Numbers) -> ir.Value:
    """The number, after the meeting."""
    digits = number.hex()
    if digits not in numbers:
        with ir.InsertionPoint.after(meeting), meeting.location:
            other = literal(0.0 if number else 1.0)
            numbers[digits] = arith.select(meeting.holds, literal(number), other)
    return numbers[digits]


def hides_functions(kernel: KernelOp) -> bool:
    """Whether consumers in turns have time for a second approximate function of each element, which
    takes fewer FMA from the MMAs, and too little to compute one element after the other."""
    return in_turns(kernel) and 0 < _main_loop_cycles(kernel) < SHORT * _elements(kernel)


def _left_in_order(kernel: KernelOp) -> bool:
    """Whether consumers in turns compute what is hidden best one element after the other."""
    stores = walk(kernel, ApplyEpilogueOp)
    if not stores or not in_turns(kernel):
        return False
    ops, functions = _ops_of(stores[0].epilogue.blocks[0])
    elements = _elements(kernel)
    dense = ops >= DENSE * MUFU_CYCLES * functions
    return dense and SERIAL * ops * elements < HIDDEN * _main_loop_cycles(kernel)


def in_turns(kernel: KernelOp) -> bool:
    """Whether consumers take turns."""
    return any(each.agent.value in AGENTS for each in walk(kernel, sm.WarpsOp))


def shares_tiles(kernel: KernelOp, target: Target) -> bool:
    """Whether several warpgroups share a tile, and so the units for approximate functions.

    Where one has a tile of its own and nothing hides its epilogue, an H200 took 2.5 to 5 % more
    with FMA in the place of a reciprocal in three of four small products: the code is longer.
    """
    sums = [each.acc.type.shape for each in walk(kernel, AccumulatorOp)]
    return not in_turns(kernel) and any((target.mma_warpgroups(*each) or 1) > 1 for each in sums)


def _elements(kernel: KernelOp) -> float:
    """The elements of a tile that a thread of one warpgroup has."""
    return math.prod(walk(kernel, AccumulatorOp)[0].acc.type.shape) / WARPGROUP_THREADS


def _ops_of(region: ir.Block) -> tuple[int, int]:
    """About how many ops an element takes, and how many of them are approximate functions."""
    ops = functions = 0
    for op in region.operations:
        name = op.operation.name
        exact = name in FUNCTIONS
        ops += EXACT_OPS if exact else name != "arith.constant"
        functions += 2 if exact else isinstance(op, sm.ApproximateOp)
    return ops, functions


def _main_loop_cycles(kernel: KernelOp) -> float:
    """Cycles of a tile's MMAs; 0 where a launch says how many there are."""
    most = 0.0
    for op in walk(kernel, MmaOp):
        loop = op.operation.parent
        steps = loop_steps(loop) if loop.name == "scf.for" else None
        if steps is not None:
            m, n = op.acc.type.shape
            layout = op.a.type.layout
            most = max(most, steps * m * n * layout.k * layout.element_bytes / MMA_BYTES)
    return most


def loop_steps(loop: ir.Operation) -> int | None:
    """How often a loop over an index goes round, from 0 on; None if it is not known."""
    end = loop.operands[1]
    if not isinstance(end.type, ir.IndexType) or isinstance(end.owner, ir.Block):
        return None
    value = end.owner.attributes["value"] if end.owner.name == "arith.constant" else None
    return ir.IntegerAttr(value).value if value is not None else None

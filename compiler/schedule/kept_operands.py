"""Whether threads keep what an epilogue reads of the size of C, instead of waiting for its pieces.

A warpgroup that shares a tile has registers for its sums and for a residual of 16 bits beside them.
It reads that before the main loop, and finds it there behind it. Pieces come two at a time, later
ones when others have been read, and none of the main loop of another tile hides them.
"""

from __future__ import annotations

from ...dialects.mma_units import WARP
from ...dialects.target import WARPGROUP_THREADS, Target
from .problem import Problem, Schedule
from .vectors import NEIGHBOURS, REGISTER_BYTES, registers_of

OTHER_REGISTERS = 40  # of a thread, beside its sums and what it keeps
INSTRUCTIONS_MAX = 1
"""Of an element, as `epilogue_instructions` counts: a residual alone, as measured."""


def keeps_operands(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether they do so in a schedule's kernel, where pieces would come ahead."""
    others = problem.grouped or problem.swapped or problem.batch > 1 or problem.products > 1
    open_sizes = problem.dynamic_m or problem.dynamic_batch
    if not schedule.ahead or schedule.ping_pong or others or open_sizes or problem.further_bytes:
        return False
    vectors = problem.beside_columns or problem.beside_rows
    if problem.n % NEIGHBOURS or problem.adds_products or vectors or problem.beside != (2,):
        return False
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n)
    if target.has_tensor_memory or target.mma.issuer == WARP or warpgroups is None:
        return False
    elements = m * n // (warpgroups * WARPGROUP_THREADS)
    kept = elements * sum(problem.beside) // REGISTER_BYTES
    few = problem.epilogue_instructions <= INSTRUCTIONS_MAX
    return few and elements + kept + OTHER_REGISTERS <= registers_of(warpgroups, target)

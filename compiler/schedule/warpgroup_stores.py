"""Whether the warpgroups that share a tile store their rows independently.

If they do, no warpgroup waits for another between its last MMA and its first MMA of the next tile.
On an H200, plain products with tiles of 128x256 then take 0.98 of the time, and those with GELU,
its tanh form or SiLU 0.97 to 1.01.
"""

from __future__ import annotations

from ...dialects.held_registers import ATOM_ROWS
from ...dialects.store_legality import stored_by_warpgroups
from ...dialects.target import Target
from .problem import Problem, Schedule

INSTRUCTIONS_MAX = 8
"""The most instructions per element of such an epilogue, as `epilogue_instructions` counts them:
one is a bias, a scale or ReLU, six are GELU. Functions that are exact have more (not measured)."""


def stores_by_warpgroup(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether the kernel of a schedule does this: only where TMA stores C, and no other CTA or
    operand takes part."""
    together = schedule.ping_pong or schedule.swap or schedule.split_k * schedule.split_grid > 1
    others = problem.grouped or problem.quantized or problem.further_bytes or problem.products > 1
    alone = schedule.cluster_size == 1
    if schedule.staging is None or together or others or schedule.ahead or not alone:
        return False
    if problem.epilogue_instructions > INSTRUCTIONS_MAX:
        return False
    m, n, _ = schedule.tile
    if problem.column_scales and m > ATOM_ROWS * (target.mma_warpgroups(m, n) or 1):
        return False  # 256x96, with scales of single columns: ptxas spilled a word
    return stored_by_warpgroups(target, m, n, transposed=False, in_groups=False) is None

"""How an epilogue reads vectors and scalars: by TMA during the main loop, by each thread before the
store, or by the threads as they store.

Threads that read global memory as they store wait once for each piece of a tile. What they hold in
registers instead, ptxas uses for all pieces before the first one is stored. So shared memory is
preferred.
"""

from __future__ import annotations

from ...dialects.held_registers import of_sums, scales_of_columns
from ...dialects.layout import UNIT_BYTES
from ...dialects.legality import RESERVED_BYTES
from ...dialects.mma_units import WARP
from ...dialects.target import WARPGROUP_THREADS, Target
from .problem import Problem
from .schedule import AHEAD, HELD, THREADS, Schedule

BOX_MAX = 256  # elements along an axis (cuTensorMapEncodeTiled, boxDim)
OTHER_REGISTERS = 48  # of a thread, beside its sums and what it holds of vectors
REGISTERS_MAX = 255
LOAD_REGISTERS = 40  # that a thread of the load role keeps
REGISTER_BYTES = 4
BESIDE_VECTORS = 210  # registers of sums, a product and scales, as 256x120 has
NEIGHBOURS = 2  # columns that a thread has together
SHARING_COLUMNS = 4  # threads that have a row of an MMA's sums


def with_vectors(problem: Problem, schedule: Schedule, target: Target) -> Schedule:
    """The schedule with the cheapest way to read vectors."""
    if not problem.beside_columns and not problem.beside_rows:
        return schedule
    return schedule.but(vectors=_cheapest(problem, schedule, target))


def _cheapest(problem: Problem, schedule: Schedule, target: Target) -> str:
    split = schedule.split_k * schedule.split_grid > 1
    others = problem.grouped or problem.quantized or not problem.stored_together(schedule)
    odd = problem.swapped and problem.n % NEIGHBOURS  # elsewhere TMA stores whole units
    if schedule.staging is None or split or others or odd or _full(problem, schedule, target):
        return THREADS
    if _brought(problem, schedule.but(vectors=AHEAD), target):
        return AHEAD
    return HELD if _held(problem, schedule, target) else THREADS


def _full(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether sums, products and scales of columns leave a thread no further registers: with
    256x128, ptxas spilled if TMA brought the vectors."""
    if not problem.column_scales or target.adds_from_tensor_memory:
        return False
    m, n, _ = schedule.tile
    held = of_sums(m, n, target.mma_warpgroups(m, n) or 1) + scales_of_columns(n)
    return held > BESIDE_VECTORS


def _held(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether threads have registers for what they need of a tile's vectors."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n)
    if target.has_tensor_memory or target.mma.issuer == WARP or warpgroups is None:
        return False
    sums = m * n // (warpgroups * WARPGROUP_THREADS)
    columns = n // problem.products // SHARING_COLUMNS
    held = -(-columns * sum(problem.beside_columns) // REGISTER_BYTES)
    consumers = 2 if schedule.ping_pong else warpgroups
    return sums + held + OTHER_REGISTERS <= _registers(consumers, target)


def _registers(consumers: int, target: Target) -> int:
    """The registers of a thread with that many warpgroups, after the other warpgroups have given up
    theirs."""
    if consumers == 1:
        return REGISTERS_MAX
    pool = (consumers + 1) * target.launch_registers((consumers + 1) * WARPGROUP_THREADS)
    return (pool - LOAD_REGISTERS) // consumers // 8 * 8


def _brought(problem: Problem, ahead: Schedule, target: Target) -> bool:
    """Whether TMA can bring the columns of a tile as a box of whole units, and there is room for
    them."""
    columns = ahead.tile[1] // problem.products
    units = all(columns * each % UNIT_BYTES == 0 for each in problem.beside_columns)
    room = target.shared_bytes - RESERVED_BYTES - problem.staging_bytes(ahead)
    fits = columns <= BOX_MAX and room >= ahead.stages * problem.stage_bytes(ahead)
    return bool(problem.beside_columns) and units and fits

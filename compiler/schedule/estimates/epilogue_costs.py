"""Costs of an epilogue: what computes a tile of C, and what stores it. `estimate.py` has the rest.

Kernels with tensor memory have theirs in `tensor_estimate.py`.
"""

from __future__ import annotations

from ....dialects.legality import PARTIAL_BYTES
from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..problem import LINE_BYTES, Problem, Schedule
from .costs import (
    code_cycles,
    computed_cycles,
    epilogue_operand_cycles,
    part_cycles,
    scale_cycles,
    vector_cycles,
)
from .two_level_costs import stored_alone


def epilogue_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles from the accumulator to global memory: those of the function, and of the stores.

    Where rows are grouped, the way to the next tile counts too: other consumers hide it. Parts of K
    over a cluster each read and compute their part of the tile.
    """
    if schedule.split_grid > 1:
        return part_cycles(problem, schedule, target)
    fetched = code_cycles(problem, schedule, target)
    computed = max(fetched, computed_cycles(problem, schedule, target))
    computed += figures(target).group_walk if problem.grouped == "m" else 0
    if schedule.split_k > 1:
        return computed / schedule.split_k + _reduction_cycles(problem, schedule, target)
    cycles = computed + store_cycles(problem, schedule, target)
    cycles *= stored_alone(problem, schedule, target)
    cycles += vector_cycles(problem, schedule, target)
    piece = cycles / max(1, problem.pieces(schedule))
    return cycles + epilogue_operand_cycles(problem, schedule, target, piece)


def store_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which a tile of each output is stored; two staging buffers overlap both halves."""
    (m, n, _), chip = schedule.tile, figures(target)
    stored_bytes = problem.output_bytes(m * n // problem.products)
    if schedule.staging is None:
        scales, rows = scale_cycles(problem, schedule, target), rows_by_threads(problem, m)
        return rows / m * stored_bytes / chip.direct_store_rate + scales
    columns, buffers = schedule.staging
    pack, asked = stored_bytes / chip.shared_rate, _stored_lines(problem, schedule)
    store = max(stored_bytes / chip.tma_store_rate, asked * chip.store_request)
    pieces = n // columns * chip.staged_piece
    if buffers == (2 if schedule.ping_pong else 1):
        return pieces + pack + store
    return pieces + max(pack, store) + min(pack, store) * columns / n


def rows_by_threads(problem: Problem, rows: int) -> int:
    """How many of a tile's rows threads store: as many as its group has on average."""
    return min(rows, problem.m) if problem.grouped == "m" else rows


def _stored_lines(problem: Problem, schedule: Schedule) -> int:
    """Partial lines of C that TMA stores per tile: the rows of pieces, or the columns of all its
    rows.

    Stores of further outputs hide behind them: an H200 took no longer with pieces of 32 columns of
    two outputs than with pieces of 64, which are half as many.
    """
    m, n, _ = schedule.tile
    n //= problem.products
    if problem.swapped:
        return n * -(-m * problem.c_bytes // LINE_BYTES)
    columns, _ = schedule.staging or (n, 1)
    return m * (n // columns) * -(-columns * problem.c_bytes // LINE_BYTES)


def _reduction_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which a cluster writes its sums, meets, reads them and stores its part of C."""
    elements = schedule.tile[0] * schedule.tile[1]
    exchanged = elements * PARTIAL_BYTES / split_figures(target).rate
    part = elements // problem.products * problem.c_bytes / schedule.split_k
    stored = part / split_figures(target).store
    read = elements // problem.products * sum(problem.beside) / schedule.split_k
    stored += read / split_figures(target).beside
    return split_figures(target).latency * schedule.split_k + exchanged + stored

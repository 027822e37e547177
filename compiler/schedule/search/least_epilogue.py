"""What the epilogue of a tile takes at least, whatever K the tile takes and however it is stored.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math

from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..estimates.costs import code_cycles, computed_cycles, scale_cycles, vector_cycles
from ..estimates.estimate import rows_by_threads
from ..estimates.two_level_costs import stored_alone
from ..problem import LINE_BYTES, Problem, Schedule
from ..rules.staging_rules import own_staging, scatters_columns
from .stagings import STAGINGS, stagings_in_turns


def least_epilogue_cycles(problem: Problem, tile: Schedule, staged: bool, target: Target) -> float:
    """Cycles of the epilogue of a whole tile with the best store, by TMA if C may be `staged`."""
    chip = figures(target)
    cycles = max(computed_cycles(problem, tile, target), code_cycles(problem, tile, target))
    cycles += chip.group_walk if problem.grouped == "m" else 0
    cycles += _least_store_cycles(problem, tile, staged, target)
    return cycles * stored_alone(problem, tile, target)


def _least_store_cycles(problem: Problem, tile: Schedule, staged: bool, target: Target) -> float:
    """Cycles in which a tile of C is stored by TMA in the best pieces, with what is beside it
    ahead, or by threads, which read that themselves and store no columns of C, nor in turns."""
    m, n, chip = tile.tile[0], tile.tile[1] // problem.products, figures(target)
    stored_bytes = m * problem.row_bytes(n)
    pack, store = stored_bytes / chip.shared_rate, stored_bytes / chip.tma_store_rate
    beside_bytes = m * n * sum(problem.beside)
    ahead = beside_bytes / chip.shared_rate
    if scatters_columns(problem) and not staged:
        return math.inf
    in_turns = tile.ping_pong and not problem.quantized
    stagings = stagings_in_turns(problem) if in_turns else STAGINGS
    widths = {staging[0] for staging in stagings if staging}
    widths = [width for width in widths if n % width == 0]
    if scatters_columns(problem):  # perhaps all in one piece
        if in_turns and not widths and not own_staging(problem, tile):
            return math.inf
        requests = n * -(-m * problem.c_bytes // LINE_BYTES)
        return ahead + chip.staged_piece + max(pack, store, requests * chip.store_request)
    rows = rows_by_threads(problem, m)
    direct = rows / m * stored_bytes / chip.direct_store_rate + scale_cycles(problem, tile, target)
    direct += beside_bytes / chip.beside_rate if beside_bytes else 0
    direct += vector_cycles(problem, tile, target)
    direct = math.inf if in_turns else direct
    if problem.quantized or not widths or not staged:
        return direct
    for width in widths:
        asked = m * n // width * -(-width * problem.c_bytes // LINE_BYTES) * chip.store_request
        slower, faster = max(pack, store, asked), min(pack, max(store, asked))
        staged_cycles = n // width * chip.staged_piece + slower + faster * width / tile.tile[1]
        direct = min(direct, ahead + staged_cycles)
    return direct

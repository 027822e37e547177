"""Candidate ping-pong schedules whose warpgroups hold more accumulators than usual.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dialects.mma_units import WGMMA_WIDE
from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..estimates.costs import once_bytes
from ..estimates.estimate import combined_us, microseconds, tensor_core_cycles
from ..problem import Problem, Schedule
from ..rules.wide_ping_pong_rules import wide_refusal
from ..schedule import AHEAD, GROUPED, PLAIN
from ..waves import band_of
from .stagings import deepest

TILES = ((128, 192), (128, 160))
OTHER_ORDERS = ("m", "n")
IN_TURNS = PLAIN.but(scheduler="static", staging=(32, 2), ping_pong=True)
PIECES_AHEAD = 4


def wide_ping_pong_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """The candidates; their ring is as deep as fits."""
    if wide_refusal(problem, target) is not None:
        return
    used, k = target.using(WGMMA_WIDE.name), 128 // problem.element_bytes
    ways = {"ahead": PIECES_AHEAD if problem.beside else 0}
    ways |= {"vectors": AHEAD} if problem.beside_columns else {}
    for tile in TILES:
        one = IN_TURNS.but(tile=(*tile, k), **ways)
        one = one.but(stages=deepest(problem, one, used))
        grouped = one.but(order=GROUPED)
        yield grouped.but(group=band_of(problem, grouped, used))
        yield from (one.but(order=order) for order in OTHER_ORDERS)


def wide_ping_pong_floor_us(problem: Problem, tile: tuple[int, int, int], target: Target) -> float:
    """A lower bound in microseconds on schedules with such tiles: their MMAs, and the least that
    DRAM moves."""
    one, used = IN_TURNS.but(tile=tile), target.using(WGMMA_WIDE.name)
    steps = problem.ctas(one) / target.multiprocessors * problem.k_tiles(one)
    mma_us = microseconds(target, steps * tensor_core_cycles(problem, one, used))
    dram_us = once_bytes(problem) / figures(target).dram_rate
    return combined_us(target, mma_us, dram_us, mma_us, dram_us)

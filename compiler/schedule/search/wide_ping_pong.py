"""Candidate ping-pong schedules whose warpgroups hold more accumulators than usual.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from ....dialects.layout import CORE_ROWS
from ....dialects.mma_units import WGMMA_WIDE
from ....dialects.store_legality import widest_piece
from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..estimates.costs import once_bytes
from ..estimates.estimate import combined_us, microseconds, tensor_core_cycles
from ..problem import Problem, Schedule, exchanged
from ..rules.wide_ping_pong_rules import wide_refusal
from ..schedule import AHEAD, GROUPED, PLAIN
from ..waves import band_of, tile_rounds
from .stagings import deepest

ROWS = 128
USUAL = (192, 160)
EVERY = tuple(range(USUAL[0], ROWS, -8))
OTHERS_MOST = 2
FEWER = 0.985  # an H200 was slower with nearly as many
PIECE = 32  # columns
WIDEST, NARROW = 128, 64  # bytes of a row of a piece
OTHER_ORDERS = ("m", "n")
IN_TURNS = PLAIN.but(scheduler="static", staging=(PIECE, 2), ping_pong=True)
PIECES_AHEAD = 4


def wide_ping_pong_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """The candidates; their ring is as deep as fits."""
    if wide_refusal(problem, target) is not None:
        return
    used = target.using(WGMMA_WIDE.name)
    for tile in _tiles(problem, used):
        seen = problem.seen_by(tile)
        one = tile.but(vectors=AHEAD) if seen.beside_columns or seen.beside_rows else tile
        one = one.but(ahead=PIECES_AHEAD) if seen.beside else one
        one = one.but(stages=deepest(seen, one, used))
        grouped = one.but(order=GROUPED)
        yield grouped.but(group=band_of(seen, grouped, used))
        yield from (one.but(order=order) for order in OTHER_ORDERS)


def _tiles(problem: Problem, target: Target) -> list[Schedule]:
    """The usual tiles, and the best of those others, also with A and B exchanged, with which the
    busiest multiprocessor computes fewer columns in total than with any usual one or with 128.

    An H200 took 0.96 of the time in 128x168 for 2048x11008x4096, and 0.97 for 8192x4096x4096, there
    with A and B exchanged.
    """
    usual = [_tile(problem, columns) for columns in USUAL]
    others = [_tile(problem, each) for each in EVERY if each not in USUAL]
    if wide_refusal(exchanged(problem), target) is None:
        others += [_tile(exchanged(problem), columns) for columns in EVERY]
    computed = partial(_columns_computed, problem, target)
    least = min(FEWER * min(map(computed, usual)), computed(_tile(problem, ROWS)))
    ranked = sorted((computed(each), at) for at, each in enumerate(others))
    fewer = (others[at] for columns, at in ranked if columns < least)
    return usual + list(islice(filter(_has_pieces, fewer), OTHERS_MOST))


def _tile(problem: Problem, columns: int) -> Schedule:
    """Tiles that are stored in the usual pieces or, where these do not divide the tile, in the
    widest up to 128 bytes; with a residual up to 64, so that more of them fit."""
    k, piece, span = 128 // problem.element_bytes, PIECE, NARROW if problem.beside else WIDEST
    if columns % PIECE:
        piece = widest_piece(ROWS, columns, problem.c_bytes, odd=True, span=span)
    return IN_TURNS.but(tile=(ROWS, columns, k), staging=(piece, 2), swap=problem.swapped)


def _has_pieces(tile: Schedule) -> bool:
    """Whether pieces are wider than the 8 columns of a matrix of stmatrix."""
    return tile.staging is not None and tile.staging[0] > CORE_ROWS


def _columns_computed(problem: Problem, target: Target, tile: Schedule) -> int:
    return tile.tile[1] * tile_rounds(problem.seen_by(tile), tile, target)


def wide_ping_pong_floor_us(problem: Problem, one: Schedule, target: Target) -> float:
    """A lower bound in microseconds on schedules with such tiles: their MMAs, and the least that
    DRAM moves."""
    problem, used = problem.seen_by(one), target.using(WGMMA_WIDE.name)
    steps = problem.ctas(one) / target.multiprocessors * problem.k_tiles(one)
    mma_us = microseconds(target, steps * tensor_core_cycles(problem, one, used))
    dram_us = once_bytes(problem) / figures(target).dram_rate
    return combined_us(target, mma_us, dram_us, mma_us, dram_us)

"""The K steps of a CTA with tcgen05.mma: the time of each, and of all.

    chain       latency of TMA + load + MMAs + their completion: what one stage takes for a K tile
    step        the longest of MMAs, load and the chain shared by the stages, which is longer where
                several loads are under way
    in turn     without roles for loads and MMAs a step waits for its own MMAs, and between two
                steps threads hear of them, meet, and issue the next load and MMAs

Latencies of memory are times: a clock that is held lower makes them fewer cycles.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.record import record
from ....dialects.target import Target
from ..cached import asked_once
from ..chips.chip_figures import figures, tensor_figures
from ..problem import LINE_BYTES, SECTOR_BYTES, Problem, Schedule
from .costs import copy_cycles

MMA_K_BYTES = 32
ROW_BYTES = 16  # of a box without a swizzle (PTX ISA, canonical layouts)


@record
class Traits:
    """Properties of kernels that the choice never makes; `inputs` are those of `Power`.

    `roles`: one warp loads and one issues MMAs. `joined`: these and all others meet after a tile's
    MMAs, and again after its stores. `columns`: the tensor-memory columns of a CTA, if they are not
    what its accumulators need. `half_sectors`: a warp stores rows of 16 bytes. `clock`: the GHz at
    which a profiler held the chip, 0 if the power limit decides.
    """

    swizzled: bool = True
    roles: bool = True
    joined: bool = False
    columns: int | None = None
    half_sectors: bool = False
    inputs: str = "random"
    clock: float = 0


CHOSEN = Traits()


class Steps(NamedTuple):
    """The K tiles of a CTA, in cycles each; `busy` by resource, `before` from its start to the
    first one.

    A slot is free again after a `chain`, or after `ring` if other loads are under way; `turn`
    passes from one step to the next if threads issue both.
    """

    k_tiles: int
    busy: dict[str, float]
    step: float
    mma: float
    chain: float
    ring: float
    turn: float
    completion: float
    start: float
    fill: float

    @property
    def before(self) -> float:
        """Cycles from the start of a CTA until it can multiply."""
        return self.start + self.fill


def memory_cycles(latency: float, target: Target, clock: float) -> float:
    """Cycles of a memory latency at a clock in GHz that is held; unchanged if the clock is 0."""
    return latency * clock / tensor_figures(target).latencies_at if clock else latency


def steps_of(
    problem: Problem, schedule: Schedule, target: Target, traits: Traits = CHOSEN
) -> Steps:
    """The K tiles of a CTA, computed once for all schedules with the same tile and cluster."""
    known, shared = _known_steps(problem, target), (schedule.tile, schedule.cluster, schedule.pair)
    asked = *shared, schedule.split_grid, traits.swizzled, traits.clock
    if asked not in known:
        known[asked] = _found_steps(problem, schedule, target, traits.swizzled, traits.clock)
    return known[asked]


@asked_once
def _known_steps(problem: Problem, target: Target) -> dict[tuple[object, ...], Steps]:
    return {}


def _found_steps(
    problem: Problem, schedule: Schedule, target: Target, swizzled: bool, clock: float
) -> Steps:
    tensor, chip = tensor_figures(target), figures(target)
    latency = memory_cycles(chip.tma_latency, target, clock)
    busy = step_busy(problem, schedule, target, swizzled)
    mma, load = busy["tensor core"], max(list(busy.values())[1:])
    pair, single = tensor.pair_latency + tensor.peer_signal, float(tensor.mma_latency)
    completion = pair if schedule.pair else single  # until those see it who wait, in both CTAs
    heard = tensor.peer_signal if schedule.pair else 0.0  # by the leader, of both loads
    chain = latency + load + heard + mma + completion
    return Steps(
        k_tiles=problem.k_tiles(schedule),
        busy=busy,
        step=max(mma, load),
        mma=mma,
        chain=chain,
        ring=chain + memory_cycles(tensor.load_queue, target, clock),
        turn=float(tensor.step_turn),
        completion=completion,
        start=chip.cta_start + (chip.cluster_start if schedule.cluster_size > 1 else 0),
        fill=latency + load,
    )


def step_busy(
    problem: Problem, schedule: Schedule, target: Target, swizzled: bool = True
) -> dict[str, float]:
    """Cycles for which each resource of a multiprocessor is busy with one K tile of one CTA, MMAs
    first."""
    busy = {
        "tensor core": mma_cycles(problem, schedule, target),
        "L2": _arriving_bytes(problem, schedule) / figures(target).l2_rate,
        "thread copies": copy_cycles(problem, schedule, target),
    }
    if not swizzled:
        rows = (problem.a_tile_bytes(schedule) + problem.b_tile_bytes(schedule)) / ROW_BYTES
        busy["rows of 16 bytes"] = rows / tensor_figures(target).row_rate
    return busy


def mma_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of the MMAs of one K tile of a CTA, up to their commit.

    64 rows take as long as 128, except in a pair. An MMA takes at least as long as reading its
    operands.
    """
    m, n, k = schedule.tile
    rows = target.mma_rows(m) or m
    full = rows if schedule.pair else target.mma.m[-1]
    computed = 2 * full * n * (MMA_K_BYTES // 2) / figures(target).mma_rate
    read = MMA_K_BYTES * (rows + schedule.b_rows) / figures(target).shared_rate
    mmas = (m // rows) * k * problem.element_bytes / MMA_K_BYTES
    return mmas * max(computed, read) + tensor_figures(target).mma_batch


def _arriving_bytes(problem: Problem, schedule: Schedule) -> float:
    """Bytes that arrive for a K tile, at most the rows of the matrix, in whole sectors of L2.

    A line of a row that starts inside a sector takes one sector more.
    """
    m, _, k = schedule.tile
    total = 0.0
    for name, rows, extent in (("a", m, problem.m), ("b", schedule.b_rows, problem.n)):
        share = 1 + SECTOR_BYTES / LINE_BYTES if name in problem.unaligned else 1
        total += share * min(rows, extent) * k * problem.element_bytes
    return total


def main_loop(steps: Steps, ring: int, traits: Traits) -> float:
    """Cycles of a CTA's steps after its first load, if it is alone on its multiprocessor."""
    around = steps.ring if ring > 1 else steps.chain
    if traits.roles:
        least, each = steps.step, around / ring
    else:
        least = max(steps.step, steps.mma + steps.completion + steps.turn)
        each = (around + steps.turn) / ring
    first = min(steps.k_tiles, ring)
    return (steps.k_tiles - first) * max(least, each) + (first - 1) * least + steps.mma

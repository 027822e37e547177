"""The fewest cycles of the schedules with a tile in tensor memory and a cluster, however they
store.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....dialects.legality import RESERVED_BYTES
from ....dialects.target import Target
from ..chips.chip_figures import tensor_figures
from ..estimates.costs import gathered_cycles
from ..estimates.tensor_estimate import loop_cycles, residents_at_most
from ..estimates.tensor_steps import CHOSEN, Steps, main_loop, steps_of
from ..problem import Problem, Schedule
from ..waves import tile_rounds
from .candidates import STAGES
from .stagings import ring_bytes, stages_beside
from .stores import LeastStore, holds_more


class Least(NamedTuple):
    """The fewest cycles of the schedules with a tile and a cluster: of epilogues and gathering, and
    in total if each CTA has one tile (`waves`) or several (`persistent`).

    The ring is the deepest that fits. An epilogue counts as the longer of its computation and its
    store. `loops` are the cycles of K tiles alone.
    """

    steps: Steps
    ends: float
    waves: float
    persistent: float
    loops: float
    rounds: int

    @staticmethod
    def of(
        problem: Problem, branch: Schedule, target: Target, stores: Sequence[LeastStore]
    ) -> Least:
        """The fewest cycles over these ways to store."""
        steps, rounds = steps_of(problem, branch, target), tile_rounds(problem, branch, target)
        stage_bytes, persistent = problem.stage_bytes(branch), math.inf
        before, completion, k_tiles = steps.before, steps.completion, steps.k_tiles
        rings: list[_Ring] = []
        room = ring_bytes(problem, target)
        for smem_bytes, cycles in stores:
            stages = stages_beside(smem_bytes, stage_bytes, room)
            epilogue = completion + cycles
            period = max(k_tiles * max(steps.step, steps.ring / stages), epilogue)
            persistent = min(persistent, before + rounds * period + epilogue)
            rings.append(_Ring(stages, smem_bytes, epilogue))
        waves = _least_of_waves(problem, branch, target, (rounds, stage_bytes), steps, rings)
        epilogue = steps.completion + min([store.cycles for store in stores], default=math.inf)
        gathered = gathered_cycles(problem, branch, target)
        around = tensor_figures(target).cold_fill + gathered
        return Least(
            steps,
            ends=steps.before + epilogue + gathered,
            waves=waves + around,
            persistent=persistent + around,
            loops=loop_cycles(problem, branch, steps, target),
            rounds=rounds,
        )

    @property
    def cycles(self) -> float:
        """The fewest cycles however tiles are handed out."""
        return min(self.waves, self.persistent) if self.rounds > 1 else self.waves


class _Ring(NamedTuple):
    """The most stages of a ring, the bytes of the store beside it, and the cycles of the epilogue
    with that store."""

    stages: int
    store_bytes: int
    epilogue: float


def _least_of_waves(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    sizes: tuple[int, int],
    steps: Steps,
    rings: Sequence[_Ring],
) -> float:
    """The fewest cycles if each CTA has one tile: the time of the resources, or that of waves of as
    many CTAs as fit. `sizes` are the tiles of a multiprocessor and the bytes of a stage."""
    (rounds, stage_bytes), more, least = sizes, holds_more(problem), math.inf
    alone, turnover = steps.step - steps.mma, tensor_figures(target).cta_turnover
    flow = rounds * steps.k_tiles * steps.step
    before, most = steps.before, residents_at_most(schedule.tile, target, CHOSEN)
    room, reserved = target.multiprocessor_shared_bytes, target.cta_reserved_shared_bytes
    kept = target.shared_bytes - RESERVED_BYTES - stage_bytes
    mains: dict[int, float] = {}
    for stages, store_bytes, epilogue in rings:
        deepest, waves_least = max(1, min(stages, steps.k_tiles)), math.inf
        for ring in (deepest, *STAGES):
            if ring > deepest:
                continue
            if ring not in mains:
                mains[ring] = main_loop(steps, ring, CHOSEN)
            used = ring * stage_bytes + store_bytes
            if more and ring == deepest:  # what else is held may cut it, with no room for a stage
                used = min(used, kept)
            residents = max(1, min(most, room // (used + reserved)))
            waves = -(-rounds // residents)
            loops = max(waves * mains[ring], 0 if more or residents == 1 else flow - alone)
            cycles = waves * (before + epilogue + turnover) + loops - turnover
            waves_least = cycles if cycles < waves_least else waves_least
        least = min(least, max(before - alone + flow + epilogue, waves_least))
    return least

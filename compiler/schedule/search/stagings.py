"""The ways to store a tile of C, and how deep a ring they leave room for.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dialects.legality import RESERVED_BYTES
from ....dialects.target import Target
from ..problem import Problem, Schedule
from ..rules.rules import STAGING_RULES, keeps
from ..rules.staging_rules import own_staging
from ..vectors import with_vectors
from ..waves import tile_rounds

STAGINGS = (None, (16, 2), (32, 2), (64, 2))  # (columns, buffers)
FOUR_BLOCKS = (128, 2)  # of a C with block scales
PING_PONG_STAGINGS = ((32, 2), (32, 4))  # shared by two; an H200 hid no direct stores
STAGING_ORDER = {
    staging: place
    for place, staging in enumerate(
        dict.fromkeys((None, FOUR_BLOCKS, *STAGINGS, *PING_PONG_STAGINGS))
    )
}
AHEAD_LEAST = 2  # pieces of other operands, of each consumer
STAGES_MAX = 12
Staging = tuple[int, int] | None


def ways_to_store(problem: Problem, base: Schedule, target: Target) -> Iterator[Schedule]:
    """Every way to store; of those by TMA also with other operands ahead, the least first."""
    stagings = PING_PONG_STAGINGS if base.ping_pong else STAGINGS
    if problem.quantized:
        stagings = (*stagings, FOUR_BLOCKS)
    if own := own_staging(problem, base):
        stagings = (None, own)
    stagings = (*stagings, *_one_buffer(problem, base, stagings, target))
    for staging in stagings:
        one = with_vectors(problem, base.but(staging=staging, stages=1), target)
        if problem.beside and staging is not None and one.split_k * one.split_grid == 1:
            for ahead in _aheads(problem, one, target):
                yield one.but(ahead=ahead)
        yield one


def _one_buffer(
    problem: Problem, base: Schedule, stagings: tuple[Staging, ...], target: Target
) -> list[Staging]:
    """Of wide pieces a single buffer, where that leaves the ring room for one more stage."""
    if base.ping_pong or problem.beside or problem.quantized or not target.issuers_store:
        return []
    two = [each for each in stagings if each and each[1] > 1]
    kept = [each for each in two if keeps(STAGING_RULES, problem, base.but(staging=each), target)]
    if not kept:
        return []
    one = min(kept)[0], 1
    stages = [deepest(problem, base.but(staging=each), target) for each in (one, *kept)]
    return [one] if stages[0] > max(stages[1:]) else []


def _aheads(problem: Problem, staged: Schedule, target: Target) -> list[int]:
    """How many pieces of other operands: as many as fit beside the ring that is deepest with few,
    and all of a tile, for each consumer.

    Consumers in turns take few, beside a buffer of C each: so an H200 took 0 to 4 % less than with
    six pieces on their way, and with two and more buffers 0 to 5 % more.
    """
    consumers = 2 if staged.ping_pong else 1
    few, most = AHEAD_LEAST * consumers, consumers * problem.pieces(staged)
    if staged.ping_pong:
        alone = staged.staging is not None and staged.staging[1] == consumers
        return sorted({min(few, most), most} - {0}) if alone else []
    one = staged.but(ahead=few)
    room = target.shared_bytes - RESERVED_BYTES - problem.staging_bytes(one)
    left = room - deepest(problem, one, target) * problem.stage_bytes(one)
    each = problem.staging_bytes(staged.but(ahead=consumers)) - problem.staging_bytes(staged)
    fitting = few + max(0, left // each) * consumers
    return sorted({min(fitting, most), most} - {0})


def deepest(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The most stages that fit beside the staging buffers and that the tiles of a CTA can fill."""
    steps = problem.k_tiles(schedule)
    fitting = fitting_stages(problem, schedule, target)
    if fitting > steps and schedule.scheduler != "none":
        steps *= tile_rounds(problem, schedule, target)
    return max(1, min(fitting, steps))


def fitting_stages(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The most stages that fit beside the staging buffers."""
    room = target.shared_bytes - RESERVED_BYTES - problem.staging_bytes(schedule)
    return max(1, min(room // problem.stage_bytes(schedule), STAGES_MAX))

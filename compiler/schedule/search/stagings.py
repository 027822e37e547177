"""The ways to store a tile of C, and the depth of the ring that each leaves room for.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dialects.legality import RESERVED_BYTES
from ....dialects.mma_units import WGMMA
from ....dialects.target import Target
from ..problem import Problem, Schedule
from ..rules.rules import STAGING_RULES, keeps
from ..rules.staging_rules import own_staging
from ..schedule import HELD
from ..slot_reuse import may_reuse_slots
from ..vectors import with_vectors
from ..waves import tile_rounds

STAGINGS = (None, (16, 2), (32, 2), (64, 2))  # (columns, buffers)
FOUR_BLOCKS = (128, 2)  # of a C with block scales
PING_PONG_STAGINGS = ((32, 2), (32, 4))  # shared by two; an H200 hid no direct stores
WIDE = (64, 2)
ARITHMETIC_MAX = 1  # instructions of an epilogue without functions: a bias, a scale or ReLU
STAGING_ORDER = {
    staging: place
    for place, staging in enumerate(
        dict.fromkeys((None, FOUR_BLOCKS, *STAGINGS, *PING_PONG_STAGINGS))
    )
}
AHEAD_LEAST = 2  # pieces of other operands, of each consumer
STAGES_MAX = 12
COPYING_BYTES = 163 * 1024
"""What a CTA has of shared memory where threads copy on Hopper: L1 has the rest of 256 KB, in steps
of 32. An H200 took 0.72 to 0.86 of the time with as much as with 200 KB or more, in tiles of 128x96
to 128x128 of three shapes, and 0.9 to 1.02 of that with 168 to 188."""
Staging = tuple[int, int] | None


def ways_to_store(problem: Problem, base: Schedule, target: Target) -> Iterator[Schedule]:
    """Every way to store; those by TMA also with prefetching of other operands, the cheapest
    first."""
    stagings = stagings_of(problem, base)
    stagings = (*stagings, *_one_buffer(problem, base, stagings, target))
    for staging in stagings:
        one = with_vectors(problem, base.but(staging=staging, stages=1), target)
        if problem.beside and staging is not None and one.split_k * one.split_grid == 1:
            for ahead in _aheads(problem, one, target):
                yield one.but(ahead=ahead)
        yield one


def stagings_of(problem: Problem, base: Schedule) -> tuple[Staging, ...]:
    """The stagings of tiles with these rows and columns, without the one with a single buffer."""
    if own := own_staging(problem, base):
        return None, own
    stagings = stagings_in_turns(problem) if base.ping_pong else STAGINGS
    return (*stagings, FOUR_BLOCKS) if problem.quantized else stagings


def stagings_in_turns(problem: Problem) -> tuple[tuple[int, int], ...]:
    """The stagings of ping-pong consumers. Wide pieces take 0.4 to 1 % less time if functions are
    computed piece by piece, and as long as others elsewhere. With several outputs, where a piece
    waits for more, they took 3 to 7 % longer than two narrow buffers of as many bytes."""
    wide = problem.epilogue_instructions > ARITHMETIC_MAX and not problem.further_bytes
    return (*PING_PONG_STAGINGS, WIDE) if wide else PING_PONG_STAGINGS


def least_stores(
    problem: Problem, base: Schedule, target: Target
) -> Iterator[tuple[Schedule, Schedule]]:
    """For each way to store tiles with these rows and columns, a schedule that needs the least
    shared memory, and one that takes the least time, with free reads of vectors."""
    legal = [
        one
        for one in (base.but(staging=staging) for staging in stagings_of(problem, base))
        if keeps(STAGING_RULES[:1], problem, one, target)
    ]
    if not (base.ping_pong or problem.beside or problem.quantized or not target.issuers_store):
        wide = [one.staging for one in legal if one.staging and one.staging[1] > 1]
        legal += [base.but(staging=(columns, 1)) for columns, _ in wide]
    for one in legal:
        held = one.but(vectors=HELD) if one.staging else one
        if keeps(STAGING_RULES, problem, one, target):
            yield one, held
        for few, many in _any_ahead(problem, one, target):
            yield one.but(ahead=few), held.but(ahead=many)


def _any_ahead(problem: Problem, one: Schedule, target: Target) -> Iterator[tuple[int, int]]:
    """Ranges of the number of pieces of other operands that may be prefetched, each from a number
    to less than twice that number."""
    consumers = 2 if one.ping_pong else 1
    most = consumers * problem.pieces(one) if problem.beside else 0
    few = min(AHEAD_LEAST * consumers, most)
    if few and keeps(STAGING_RULES, problem, one.but(ahead=few), target):
        if may_reuse_slots(problem, target):  # where none is waited for
            yield few, most
            return
        while few <= most:
            yield few, min(2 * few - consumers, most)
            few *= 2


def _one_buffer(
    problem: Problem, base: Schedule, stagings: tuple[Staging, ...], target: Target
) -> list[Staging]:
    """Wide pieces with a single buffer, where that leaves room for one more stage."""
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
    """How many pieces of other operands are prefetched: as many as fit beside the deepest ring that
    few pieces allow, and all pieces of a tile, for each consumer.

    Ping-pong consumers prefetch few pieces, and have a buffer of C each: with that an H200 took 0
    to 4 % less than with six pieces under way, and with two and more buffers 0 to 5 % more.
    """
    consumers = 2 if staged.ping_pong else 1
    few, most = AHEAD_LEAST * consumers, consumers * problem.pieces(staged)
    if staged.ping_pong:
        alone = staged.staging is not None and staged.staging[1] == consumers
        return sorted({min(few, most), most} - {0}) if alone else []
    one = staged.but(ahead=few)
    room = ring_bytes(problem, target) - problem.staging_bytes(one)
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
    stage_bytes = problem.stage_bytes(schedule)
    return stages_beside(problem.staging_bytes(schedule), stage_bytes, ring_bytes(problem, target))


def stages_beside(staging_bytes: int, stage_bytes: int, room: int) -> int:
    """The most stages of `stage_bytes` that fit in `room` beside buffers of `staging_bytes`."""
    return max(1, min((room - staging_bytes) // stage_bytes, STAGES_MAX))


def ring_bytes(problem: Problem, target: Target) -> int:
    """The bytes that a ring and staging buffers may have together: all that a CTA has, or what
    leaves L1 room for the sectors that are under way."""
    shared = COPYING_BYTES if leaves_l1(problem, target) else target.shared_bytes
    return shared - RESERVED_BYTES


def leaves_l1(problem: Problem, target: Target) -> bool:
    """Whether threads copy through L1, as far as a GPU has timed that: what is gathered in units of
    16 bytes passes it by."""
    copied = not (problem.gathered or (problem.by_tma("a") and problem.by_tma("b")))
    return copied and target.mma.name == WGMMA.name

"""Gives a one-slot operand ring N slots and loads N-1 steps ahead.

    for %k in 0 .. K {                  for %p in 0 .. N-1 { load(%p) }
      load(%k)                          for %k in 0 .. K-(N-1) {
      mma(%k) }                  →        mma(%k)          load(%k + N-1) }
                                        for %k in K-(N-1) .. K { mma(%k) }

Here load stands for acquire, copies and commit, and mma stands for wait, mma and release. The
steady-state loop issues the MMA of this step before it acquires the slot of the previous one, so
that the tensor core always has work. If the threads that issue MMAs also copy, and MMAs complete
when they are issued (mma.sync), they start the copies first, and the MMAs hide them.

If an agent must wait for its MMAs before it releases their operands (`tile.await_mma`), it releases
one step late, while the next MMA runs. All N slots are then filled in advance:

    for %p in 0 .. N { load(%p) }
    start(0)
    for %k in 1 .. K-(N-1) { start(%k)  await 1  release     load(%k + N-1) }
    for %k in K-(N-1) .. K { start(%k)  await 1  release }
    await 0  release

Threads that accumulate the results of MMAs themselves wait for each of them, and most release it in
the same step (`release_steps`): `start(0) await 0 release`, and so on.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects.mlir import arith, ir, scf
from ...dialects.mma_units import ISSUED
from ...dialects.pipe import AcquireOp, CommitOp, CreateOp, ReleaseOp, TileOp
from ...dialects.record import record
from ...dialects.release_steps import releases_late
from ...dialects.target import Target
from ...dialects.tile import AwaitMmaOp, KernelOp, MmaOp, SplitStartOp
from ...dialects.tile.blockwise import BLOCKWISE_MMAS
from ...dialects.tile.groups import GroupStepsOp
from ...dialects.tile_types import SmemType, integer
from ..base import PassLog, auto_option, many, parse_positive, refused, target_of, the_kernel, walk
from ..clone import (
    Mapping,
    clone,
    constant_of,
    erase_unused,
    index_constant,
    is_pure,
    iterations_of,
    limited,
)
from ..rings import is_operand_ring, retype_ring, ring_slot_bytes, slot_parts, used_shared_bytes

NO_LOOP = "the ring must be filled in an scf.for of constant bounds"
IN_A_LOOP = "fill it in one loop over K"
AUTO_STAGES_MAX = 8


@record
class Pipelining:
    """One-slot operand rings → N slots, loads N-1 steps ahead of the MMAs.

    `stages` is N; auto is as many as shared memory holds, up to 8.
    """

    name: ClassVar[str] = "pipelining"
    stages: int | None = auto_option(parse_positive, "a number of slots")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        rings = [create for create in walk(kernel, CreateOp) if is_operand_ring(create)]
        if not rings:
            copies = "tma-insertion" if target.async_agents else "copy-insertion"
            raise refused(
                kernel, f"pipelining: operands must come through a pipe; run {copies} first"
            )
        for create in rings:
            if create.ring.type.stages > 1:
                raise refused(create, "pipelining: the ring has stages already; run it once")
            _check_place(create)
            stages = self._stages(kernel, create, target)
            _pipeline(create, stages, target)
            log.did(f"{many(stages, 'stage')} of {ring_slot_bytes(create)} bytes")
        _keep_apart(kernel)

    def _stages(self, kernel: KernelOp, create: CreateOp, target: Target) -> int:
        slot = ring_slot_bytes(create)
        free = target.shared_bytes - used_shared_bytes(kernel, create)
        fitting = free // slot
        if self.stages is None:
            return max(1, min(fitting, AUTO_STAGES_MAX))
        if self.stages > fitting:
            raise refused(
                create,
                f"pipelining: {self.stages} stages of {slot} bytes are {self.stages * slot} bytes, "
                f"over the {free} that {target.chip} has left; use stages={fitting} or fewer",
            )
        return self.stages


def _keep_apart(kernel: KernelOp) -> None:
    """If K is known only at launch, let parts of it be at least as long as the loops need."""
    least = max((op.less.value + op.least.value for op in walk(kernel, GroupStepsOp)), default=1)
    for start in walk(kernel, SplitStartOp):
        start.steps.owner.attributes["least"] = integer(least)


def self_filled(create: CreateOp, target: Target) -> bool:
    """Whether the threads that issue MMAs also fill the ring, with MMAs that complete when issued:
    each step then begins with a barrier, after which the copies of a later step start."""
    fills = [use.owner for part in _parts_of(create) for use in part.tile.uses]
    return target.mma.completion == ISSUED and all(op.name == "tile.copy" for op in fills)


def _parts_of(create: CreateOp) -> list[TileOp]:
    return slot_parts(_acquire_of(create).opview.slot)


def _pipeline(create: CreateOp, stages: int, target: Target) -> None:
    retype_ring(create, stages, create.ring.type.tiles)
    if stages == 1:
        return
    acquire = _acquire_of(create)
    loop = acquire.parent.opview
    steps = iterations_of(loop)
    if not steps:
        raise refused(
            create, f"pipelining: {NO_LOOP}, got one whose bounds are values; {IN_A_LOOP}"
        )
    if walk(loop, AwaitMmaOp):
        _pipeline_awaiting(create, loop, stages, steps, target)
        return
    ahead = min(stages - 1, len(steps))
    producer, consumer = _split(loop, acquire.opview)
    with ir.InsertionPoint(loop), loop.operation.location:
        _loop_of(producer, loop, steps[:ahead])
    with ir.InsertionPoint.after(loop), loop.operation.location:
        _loop_of(consumer, loop, steps[len(steps) - ahead :])
    place = _first_mma(consumer) if self_filled(create, target) else None
    _prefetch(loop, producer, ahead, steps[: len(steps) - ahead], place)


def _check_place(create: CreateOp) -> None:
    """Refuse a ring that is not filled and emptied exactly once, in order, in one loop."""
    ring, ends = create.ring, ("acquire", "commit", "wait", "release")
    users = {
        end: [use.owner for use in ring.uses if use.owner.name == f"pipe.{end}"] for end in ends
    }
    places = {op.parent for ops in users.values() for op in ops}
    if any(len(ops) != 1 for ops in users.values()) or len(places) != 1:
        counts = ", ".join(f"{len(ops)} pipe.{end}" for end, ops in users.items())
        raise refused(
            create,
            f"pipelining: must be filled and emptied at one place in one loop, got {counts} in "
            f"{len(places)} blocks; give each place a ring of its own",
        )
    (loop,) = places
    if not isinstance(loop.opview, scf.ForOp):
        got = loop.name
        raise refused(create, f"pipelining: {NO_LOOP}, got it in {got}; {IN_A_LOOP}")
    body = [op.operation for op in loop.opview.body.operations]
    order = [body.index(ops[0].operation) for ops in users.values()]
    awaits = [body.index(op.operation) for op in walk(loop.opview, AwaitMmaOp)]
    if order != sorted(order) or any(at < order[2] for at in awaits):
        raise refused(
            create,
            "pipelining: a step must acquire, commit, wait and release, in this order, got "
            "another; order them so",
        )
    inner = [op for op in loop.opview.body.operations if list(op.operation.regions)]
    if inner:
        raise refused(
            inner[0], "pipelining: must not stand in the loop that fills a ring, got one; move it"
        )


def _pipeline_awaiting(
    create: CreateOp, loop: scf.ForOp, stages: int, steps: range, target: Target
) -> None:
    """The same for an agent that waits for its MMAs before it releases slots."""
    producer, consumer = _split(loop, _acquire_of(create).opview)
    is_late = _releases_late(_first_mma(consumer), target)
    late = [op for op in consumer if is_late and isinstance(op, AwaitMmaOp | ReleaseOp)]
    start = [op for op in consumer if op not in late]
    filled = min(stages, len(steps))
    ahead = filled - 1
    with ir.InsertionPoint(loop), loop.operation.location:
        _loop_of(producer, loop, steps[:filled])
        _copy(start, loop, {loop.induction_variable: index_constant(steps[0])})
    with ir.InsertionPoint.after(loop), loop.operation.location:
        _set_pending(late, 1)
        _loop_of(consumer, loop, steps[max(1, len(steps) - ahead) :])
        _set_pending([clone(op, {}).opview for op in late], 0)
    _prefetch(loop, producer, ahead, steps[1 : max(1, len(steps) - ahead)])


def _releases_late(op: Any, target: Target) -> bool:
    scaled, (m, n) = isinstance(op, BLOCKWISE_MMAS), op.acc.type.shape
    columns = scaled and isinstance(op.b_scales.type, SmemType)
    return releases_late(target, m, n, scaled, columns)


def _set_pending(ops: list[Any], pending: int) -> None:
    for op in ops:
        if isinstance(op, AwaitMmaOp):
            op.operation.attributes["pending"] = integer(pending)


def _acquire_of(create: CreateOp) -> ir.OpView:
    return next(use.owner for use in create.ring.uses if use.owner.name == "pipe.acquire")


def _split(loop: scf.ForOp, acquire: AcquireOp) -> tuple[list[Any], list[Any]]:
    """(ops that fill the slot, other ops with side effects); pure ops are in neither."""
    fills = {part.operation for part in slot_parts(acquire.slot)}
    fills |= {use.owner for part in slot_parts(acquire.slot) for use in part.tile.uses}
    commits = [use.owner for use in acquire.ring.uses if isinstance(use.owner.opview, CommitOp)]
    producer_ops = {acquire.operation, *commits, *fills}
    effects = [op for op in list(loop.body.operations)[:-1] if not is_pure(op)]
    producer = [op for op in effects if op.operation in producer_ops]
    return producer, [op for op in effects if op.operation not in producer_ops]


def _loop_of(ops: list[Any], source: scf.ForOp, steps: range) -> None:
    """A loop over `steps` with copies of `ops` of the source loop, unless there are no steps."""
    if not steps:
        return
    bounds = (steps.start, steps.stop, steps.step)
    loop = scf.ForOp(*(index_constant(bound) for bound in bounds))
    with ir.InsertionPoint(loop.body):
        _copy(ops, source, {source.induction_variable: loop.induction_variable})
        scf.YieldOp([])


def _copy(ops: list[Any], source: scf.ForOp, mapping: Mapping) -> None:
    """Copy `ops` and the pure ops of the source loop that they use."""
    for op in list(source.body.operations)[:-1]:
        if op in ops or (is_pure(op) and _is_read_by(op, ops)):
            clone(op, mapping)


def _is_read_by(op: Any, ops: list[Any]) -> bool:
    readers = {use.owner for result in op.operation.results for use in result.uses}
    return any(each.operation in readers or _is_read_by_pure(readers, ops) for each in ops)


def _is_read_by_pure(readers: set[ir.Operation], ops: list[Any]) -> bool:
    return any(is_pure(reader.opview) and _is_read_by(reader.opview, ops) for reader in readers)


def _first_mma(ops: list[Any]) -> Any:
    return next(op for op in ops if isinstance(op, MmaOp))


def _prefetch(
    loop: scf.ForOp, producer: list[Any], ahead: int, steps: range, place: Any = None
) -> None:
    """Let the loop run over `steps` and fill the slot of `ahead` steps later: after its MMA, or
    before the op `place`."""
    if not steps:
        loop.operation.erase()
        return
    with ir.InsertionPoint(loop), loop.operation.location:
        if steps.start != constant_of(loop.lowerBound):
            loop.operation.operands[0] = index_constant(steps.start)
        loop.operation.operands[1] = limited(
            loop.upperBound, steps.start + 1, steps.stop, ahead * steps.step
        )
        distance = index_constant(ahead * steps.step)
    with ir.InsertionPoint(place or list(loop.body.operations)[-1]), loop.operation.location:
        later = arith.addi(loop.induction_variable, distance)
        _copy(producer, loop, {loop.induction_variable: later})
    for op in reversed(producer):
        op.operation.erase()
    erase_unused(loop.body)

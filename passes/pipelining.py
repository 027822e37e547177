"""Gives a one-slot operand ring N slots and loads N-1 steps ahead.

    for %k in 0 .. K {                  for %p in 0 .. N-1 { load(%p) }
      load(%k)                          for %k in 0 .. K-(N-1) {
      mma(%k) }                  →        mma(%k)          load(%k + N-1) }
                                        for %k in K-(N-1) .. K { mma(%k) }

load is acquire, copies, commit; mma is wait, mma, release. In the steady loop the MMA of this step
is issued before the slot of the last one is asked for, so that the tensor core always has work.

Where an agent waits for its MMAs before it releases what they read (`tile.await_mma`), it does so
one step late, with the next MMA under way. All N slots are then filled beforehand:

    for %p in 0 .. N { load(%p) }
    start(0)
    for %k in 1 .. K-(N-1) { start(%k)  await 1  release     load(%k + N-1) }
    for %k in K-(N-1) .. K { start(%k)  await 1  release }
    await 0  release
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..dialects.mlir import arith, ir, scf
from ..dialects.pipe import AcquireOp, CommitOp, CreateOp, ReleaseOp
from ..dialects.target import Target
from ..dialects.tile import AwaitMmaOp, KernelOp
from .base import PassLog, option, refused, target_of, the_kernel, walk
from .clone import Mapping, clone, constant_of, erase_unused, index_constant, is_pure
from .rings import (
    is_operand_ring,
    retype_ring,
    ring_slot_bytes,
    slot_parts,
    used_shared_bytes,
)

AUTO_STAGES_MAX = 8


def parse_stages(text: str) -> int | None:
    """`auto` (None) or a positive count."""
    if text == "auto":
        return None
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


@dataclass(frozen=True)
class Pipelining:
    """One-slot operand rings → N slots, loads N-1 steps ahead of the MMAs.

    `stages` is N; auto takes as many as shared memory holds, up to 8.
    """

    name: ClassVar[str] = "pipelining"
    stages: int | None = option(None, parse_stages, "auto or a number of slots")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        rings = [create for create in walk(kernel, CreateOp) if is_operand_ring(create)]
        if not rings:
            raise refused(
                kernel, "pipelining: operands must come through a pipe; run tma-insertion first"
            )
        for create in rings:
            if create.ring.type.stages > 1:
                raise refused(create, "pipelining: the ring has stages already; run it once")
            stages = self._stages(kernel, create, target)
            _pipeline(create, stages)
            log.did(f"{stages} stages of {ring_slot_bytes(create)} bytes")

    def _stages(self, kernel: KernelOp, create: CreateOp, target: Target) -> int:
        slot, free = (
            ring_slot_bytes(create),
            target.shared_bytes - used_shared_bytes(kernel, create),
        )
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


def _pipeline(create: CreateOp, stages: int) -> None:
    retype_ring(create, stages, create.ring.type.tiles)
    if stages == 1:
        return
    acquire = _acquire_of(create)
    loop = acquire.parent.opview
    steps = constant_of(loop.upperBound) if isinstance(loop, scf.ForOp) else None
    if steps is None:
        raise refused(create, "pipelining: the ring must be filled in a loop of constant length")
    if walk(loop, AwaitMmaOp):
        _pipeline_late(create, loop, stages, steps)
        return
    ahead = min(stages - 1, steps)
    producer, consumer = _split(loop, acquire.opview)
    with ir.InsertionPoint(loop), loop.operation.location:
        _loop_of(producer, loop, 0, ahead)
    with ir.InsertionPoint.after(loop), loop.operation.location:
        _loop_of(consumer, loop, steps - ahead, steps)
    _prefetch(loop, producer, ahead, (0, steps - ahead))


def _pipeline_late(create: CreateOp, loop: scf.ForOp, stages: int, steps: int) -> None:
    """The same where slots are released one step late."""
    producer, consumer = _split(loop, _acquire_of(create).opview)
    late = [op for op in consumer if isinstance(op, AwaitMmaOp | ReleaseOp)]
    start = [op for op in consumer if op not in late]
    filled = min(stages, steps)
    ahead = filled - 1
    with ir.InsertionPoint(loop), loop.operation.location:
        _loop_of(producer, loop, 0, filled)
        _copy(start, loop, {loop.induction_variable: index_constant(0)})
    with ir.InsertionPoint.after(loop), loop.operation.location:
        _set_pending(late, 1)
        _loop_of(consumer, loop, max(1, steps - ahead), steps)
        _set_pending([clone(op, {}).opview for op in late], 0)
    _prefetch(loop, producer, ahead, (1, steps - ahead))


def _set_pending(ops: list[Any], pending: int) -> None:
    for op in ops:
        if isinstance(op, AwaitMmaOp):
            i64 = ir.IntegerType.get_signless(64)
            op.operation.attributes["pending"] = ir.IntegerAttr.get(i64, pending)


def _acquire_of(create: CreateOp) -> ir.Operation:
    return next(use.owner for use in create.ring.uses if use.owner.name == "pipe.acquire")


def _split(loop: scf.ForOp, acquire: AcquireOp) -> tuple[list[Any], list[Any]]:
    """(ops that fill the slot, the other ops that have an effect), pure ops in neither."""
    fills = {part.operation for part in slot_parts(acquire.slot)}
    fills |= {use.owner for part in slot_parts(acquire.slot) for use in part.tile.uses}
    commits = [use.owner for use in acquire.ring.uses if isinstance(use.owner.opview, CommitOp)]
    producer_ops = {acquire.operation, *commits, *fills}
    effects = [op for op in list(loop.body.operations)[:-1] if not is_pure(op)]
    producer = [op for op in effects if op.operation in producer_ops]
    return producer, [op for op in effects if op.operation not in producer_ops]


def _loop_of(ops: list[Any], source: scf.ForOp, start: int, end: int) -> None:
    """A loop from `start` to `end` that does `ops` of the source loop, if it has a step."""
    if start == end:
        return
    loop = scf.ForOp(index_constant(start), index_constant(end), index_constant(1))
    with ir.InsertionPoint(loop.body):
        _copy(ops, source, {source.induction_variable: loop.induction_variable})
        scf.YieldOp([])


def _copy(ops: list[Any], source: scf.ForOp, mapping: Mapping) -> None:
    """Copy `ops` and the pure ops of the source's body that they read."""
    for op in list(source.body.operations)[:-1]:
        if op in ops or (is_pure(op) and _is_read_by(op, ops)):
            clone(op, mapping)


def _is_read_by(op: Any, ops: list[Any]) -> bool:
    readers = {use.owner for result in op.operation.results for use in result.uses}
    return any(each.operation in readers or _is_read_by_pure(readers, ops) for each in ops)


def _is_read_by_pure(readers: set[ir.Operation], ops: list[Any]) -> bool:
    return any(is_pure(reader.opview) and _is_read_by(reader.opview, ops) for reader in readers)


def _prefetch(loop: scf.ForOp, producer: list[Any], ahead: int, steps: tuple[int, int]) -> None:
    """Let the loop run over `steps` and fill the slot of `ahead` steps later, after its MMA."""
    if steps[0] >= steps[1]:
        loop.operation.erase()
        return
    with ir.InsertionPoint(loop), loop.operation.location:
        if steps[0]:
            loop.operation.operands[0] = index_constant(steps[0])
        loop.operation.operands[1] = index_constant(steps[1])
        distance = index_constant(ahead)
    terminator = list(loop.body.operations)[-1]
    with ir.InsertionPoint(terminator), loop.operation.location:
        later = arith.addi(loop.induction_variable, distance)
        _copy(producer, loop, {loop.induction_variable: later})
    for op in reversed(producer):
        op.operation.erase()
    erase_unused(loop.body)

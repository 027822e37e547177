"""Checks of the start and the end of a kernel, after pipes are lowered to barriers.

init       one lane of the prologue, or an early one, initialises the barrier of every slot once,
           with the count of its `sm.barriers`, and fences that
meeting    all threads of the CTA, or of its cluster, meet after the prologue, before the
           program; at its end again, where there is tensor memory or a cluster
memory     the first warp allocates tensor memory, and gives it back after the last meeting; its
           address is read between, once those who use it have met. In a cluster it allocates
           after the first meeting: the other CTA of a pair must have been launched
"""

from __future__ import annotations

from typing import Any, get_args

from ....dialects import sm
from ....dialects.fallback import arrivals_in_fallback, fallback_of
from ....dialects.mlir import ir
from ....dialects.sm.memory import BarriersOp, TensorMemoryOp
from ....dialects.sm.ring_memory import MEMORY_OPS
from ....dialects.sm.threads import (
    LANE,
    ConvergeOp,
    EarlyOp,
    FirstWarpOp,
    InPreferredOp,
    PrologueOp,
    RunOp,
    who_runs,
)
from ....dialects.tile import AccumulatorOp, KernelOp, TensorMapOp
from ....dialects.tile.marks import MarkOp
from ...base import defining_op, refused, visit_all, walk
from ...clone import constant_of
from ...plan import cluster_of
from ...team import in_preferred, place_op
from ...tmem_users import TmemMeeting

MEETINGS = (sm.CtaBarrierOp, sm.ClusterBarrierOp)
AROUND = (FirstWarpOp, sm.FenceOp)
TMEM_OPS = (sm.TmemAllocOp, sm.TmemRelinquishOp, sm.TmemBaseOp, sm.TmemDeallocOp)
PLACES = (
    sm.TeamOp,
    sm.CtaPlaceOp,
    InPreferredOp,
    *get_args(MEMORY_OPS),
    sm.BaseDescriptorOp,
    sm.PositionOp,
    sm.TallyOp,
    TensorMapOp,
    AccumulatorOp,
    MarkOp,
)
BEFORE = (*PLACES, PrologueOp, EarlyOp, ConvergeOp, *AROUND)
FENCED = {
    op.OPERATION_NAME
    for op in (PrologueOp, RunOp, ConvergeOp, sm.BarrierOp, sm.BarrierInitOp, sm.FenceOp)
} | {sm.PrefetchTensorMapOp.OPERATION_NAME, "arith.constant"}
"""What a prologue has that writes nothing, or nothing but barriers, which a fence orders."""


def check_ends(kernel: KernelOp) -> None:
    """Refuse, at the op, a start or an end that leaves out or doubles a part."""
    _check_inits(kernel)
    if cluster_of(kernel).size > 1:
        place_op(kernel)
    if fallback_of(kernel) is not None:
        in_preferred(kernel)
    _Ends(kernel).check()


def _check_inits(kernel: KernelOp) -> None:
    counted: set[tuple[ir.Value, int]] = set()
    fences = [op for op in walk(kernel, sm.FenceOp) if op.kind.value == "mbarrier_init"]
    for op in walk(kernel, sm.BarrierInitOp):
        barriers, slot = _initialised(op, fences)
        label, arrivals = barriers.label.value, barriers.arrivals.value
        if (barriers.barriers, slot) in counted:
            raise refused(
                op,
                f"init: {label!r} of slot {slot} must be initialised once, got a "
                "second time; drop it",
            )
        if op.count.value != arrivals:
            raise refused(
                op,
                f"init: {label!r} counts {arrivals} arrivals, got {op.count.value}; take as many",
            )
        counts, got = arrivals_in_fallback(barriers), arrivals_in_fallback(op)
        if counts != got:
            rule = f"init: {label!r} counts {counts} arrivals in a fallback cluster"
            raise refused(op, f"{rule}, got {got}; take as many")
        counted.add((barriers.barriers, slot))
    for barriers in walk(kernel, BarriersOp):
        for slot in range(barriers.slots.value):
            if (barriers.barriers, slot) not in counted:
                raise refused(
                    barriers,
                    f"init: {barriers.label.value!r} of slot {slot} must be initialised in "
                    "sm.prologue or sm.early, got no sm.barrier_init; add it",
                )


def _initialised(op: sm.BarrierInitOp, fences: list[sm.FenceOp]) -> tuple[BarriersOp, int]:
    """The barriers and the slot whose one is initialised, by one lane before the program."""
    made = defining_op(op.barrier)
    slot = constant_of(made.index) if isinstance(made, sm.BarrierOp) else None
    if slot is None or not 0 <= slot < made.barriers.type.slots:
        raise refused(
            op, "init: must be of one slot's sm.barrier, its index a constant, got another; name it"
        )
    region = op.operation.parent
    around = region if isinstance(region.opview, EarlyOp) else region.parent
    if who_runs(op) != LANE or not isinstance(around.opview, PrologueOp | EarlyOp):
        raise refused(
            op,
            f"init: a lane of sm.prologue or sm.early must do it, got {who_runs(op)!r} in "
            f"{around.name}; put it there",
        )
    if not _is_fenced(op, fences):
        raise refused(
            op, 'init: must be fenced, got no sm.fence of "mbarrier_init" after it; add one'
        )
    return defining_op(made.barriers), slot


def _is_fenced(op: sm.BarrierInitOp, fences: list[sm.FenceOp]) -> bool:
    block = op.operation.block
    behind = (each.operation for each in fences if each.operation.block == block)
    return any(op.operation.is_before_in_block(each) for each in behind)


class _Ends:
    """The ops of a kernel by their places: `start` and `end` are those of its two meetings."""

    def __init__(self, kernel: KernelOp) -> None:
        self.kernel, self.cluster = kernel, cluster_of(kernel)
        self.ops = list(kernel.body.blocks[0].operations)
        self.memory = walk(kernel, TensorMemoryOp)
        self.start = 0
        self.shared = 0  # where those meet who use tensor memory
        self.end = len(self.ops)

    def check(self) -> None:
        """Check meetings, then what stands on their sides."""
        self._count_memory()
        self._check_start()
        if self.memory or self.cluster.size > 1:
            self._check_end()
        self._check_memory()

    def _check_start(self) -> None:
        where = (at for at, op in enumerate(self.ops) if not isinstance(op, BEFORE))
        self.start = self.shared = next(where)
        self._check_meeting(self.start, "before the program")
        if self.memory and not self._takes_memory(range(self.start)):
            self._check_sharing()
        elif self.memory:
            self._check_peers()
            self._check_fences(self.start)
        for op in self.ops[self.start :]:
            if isinstance(op, PrologueOp):
                raise refused(
                    op, "meeting: the prologue must stand before it, got it after; move it"
                )

    def _check_end(self) -> None:
        places = range(len(self.ops) - 1, self.start, -1)
        self.end = next(
            (at for at in places if not isinstance(self.ops[at], AROUND)), self.start + 1
        )
        self._check_meeting(self.end, "at the end")
        if self.memory:
            self._check_fences(self.end)

    def _takes_memory(self, places: range) -> bool:
        """Whether tensor memory is allocated at one of the places."""
        takers = {op.operation.parent for op in walk(self.kernel, sm.TmemAllocOp)}
        return any(self.ops[at].operation in takers for at in places)

    def _check_peers(self) -> None:
        """PTX ISA, tcgen05.alloc: the peer CTA of who issues it must have been launched."""
        if self.cluster.size > 1:
            (op, *_) = walk(self.kernel, sm.TmemAllocOp)
            raise refused(
                op,
                "memory: a cluster's CTAs must meet before they allocate, got it before the first "
                "meeting; move it after",
            )

    def _check_sharing(self) -> None:
        """After the first meeting the first warp allocates; then those meet who use it."""
        at = self.start + 1
        if not self._takes_memory(range(at, at + 1)):
            raise refused(
                self.ops[at],
                "memory: must be allocated before the first meeting or right after it, got "
                f"{self.ops[at].operation.name}; put its sm.first_warp there",
            )
        self.shared = at + 2
        op = self.ops[self.shared]
        if not isinstance(op, sm.CtaBarrierOp) and not _meets(op):
            raise refused(
                op,
                "memory: those who use it must meet after the allocation, by sm.cta_barrier or "
                f"the barrier of sm.tmem_base, got {op.operation.name}; add it",
            )
        self._check_fences(self.shared)

    def _check_meeting(self, at: int, when: str) -> None:
        """A meeting of all who must, between fences of what tensor cores do."""
        op, wanted = self.ops[at], MEETINGS[self.cluster.size > 1]
        if not isinstance(op, wanted):
            raise refused(
                op,
                f"meeting: all threads must meet by {wanted.OPERATION_NAME} {when}, got "
                f"{op.operation.name}; add it",
            )
        if isinstance(op, sm.ClusterBarrierOp) and not op.releases.value and self._writes(at):
            raise refused(
                op,
                f"meeting: must release what is written {when}, got a relaxed one; let it release",
            )

    def _check_fences(self, at: int) -> None:
        """Around a meeting stand fences of what tensor cores do."""
        around = [self._fence_at(each) for each in (at - 1, at + 1)]
        if around != ["tcgen05_before", "tcgen05_after"]:
            raise refused(
                self.ops[at],
                "meeting: the fences tcgen05_before and tcgen05_after must stand around it, got "
                f"{' and '.join(around)}; add them",
            )

    def _writes(self, at: int) -> bool:
        """Whether more than fenced barriers is written before the first meeting; whether CTAs read
        each other's memory, as with parts of K, before the last."""
        if at != self.start:
            return self.cluster.split > 1
        names = {name for op in walk(self.kernel, PrologueOp) for name in _names_in(op)}
        return not names <= FENCED

    def _fence_at(self, at: int) -> str:
        op = self.ops[at] if at < len(self.ops) else None
        return op.kind.value if isinstance(op, sm.FenceOp) else "none"

    def _count_memory(self) -> None:
        for op_class in TMEM_OPS:
            found = walk(self.kernel, op_class)
            if len(found) != len(self.memory):
                raise refused(
                    [*found, *self.memory][-1],
                    f"memory: {len(self.memory)} allocation of tensor memory needs as many "
                    f"{op_class.OPERATION_NAME}, got {len(found)}; have one each",
                )

    def _check_memory(self) -> None:
        for op_class in TMEM_OPS:
            for op in walk(self.kernel, op_class):
                self._check_place(op)
                self._check_fields(op)

    def _check_place(self, op: Any) -> None:
        """Its address is read between the meetings; the first warp does the rest on their sides."""
        if isinstance(op, sm.TmemBaseOp):
            right, where = self.shared <= self._at(op) < self.end, "between the two meetings"
        else:
            ends = isinstance(op, sm.TmemDeallocOp)
            around = op.operation.parent.opview
            at = self._at(around)
            before = at < self.start or (self.start < at < self.shared)
            right = isinstance(around, FirstWarpOp) and (at > self.end if ends else before)
            first = "right after the first meeting, or before it"
            side = "after the last meeting" if ends else first
            where = f"in a sm.first_warp {side}"
        if not right:
            raise refused(op, f"memory: must stand {where}, got it elsewhere; move it")

    def _at(self, op: Any) -> int:
        return self.ops.index(op) if op in self.ops else -1

    def _check_fields(self, op: Any) -> None:
        (memory,) = self.memory
        wanted = {"columns": memory.columns.value, "cta_group": 2 if self.cluster.pair else 1}
        if _meets(op):
            wanted |= TmemMeeting.of(self.kernel, memory)._asdict()
        for name, value in wanted.items():
            got = getattr(op, name).value if hasattr(op, name) else value
            if got != value:
                raise refused(op, f"memory: {name} must be {value}, got {got}; take that")
        if isinstance(op, sm.TmemAllocOp):
            self._check_address(op, memory.offset.value)

    def _check_address(self, op: sm.TmemAllocOp, offset: int) -> None:
        to = defining_op(op.to)
        got = constant_of(to.offset) if isinstance(to, sm.SharedAddressOp) else None
        if got != offset:
            raise refused(
                op, f"memory: the address must go to byte {offset}, got {got}; write it there"
            )


def _meets(op: Any) -> bool:
    """Whether those who use tensor memory meet in an op that reads its address."""
    return isinstance(op, sm.TmemBaseOp) and op.barrier.value > 0


def _names_in(op: PrologueOp) -> set[str]:
    """Names of all ops under one, itself too."""
    names: set[str] = set()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        names.add(operation.name)
        return ir.WalkResult.ADVANCE

    visit_all(op, visit)
    return names

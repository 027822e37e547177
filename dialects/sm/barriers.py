"""Synchronization in `sm`: mbarriers, fences, barriers of threads, dependent grids."""

from typing import Any

from ..integer_types import I1, I32
from ..mlir import ext, ir
from ..verify import refuse
from .types import (
    CLUSTER,
    GLOBAL,
    SCOPES,
    SHARED,
    Instruction,
    verify_choice,
    verify_pointer,
    verify_range,
)

FENCES = ("async_shared", "mbarrier_init", "tcgen05_before", "tcgen05_after")
ARRIVALS_MAX = TRANSACTION_MAX = 2**20 - 1  # PTX ISA, mbarrier: valid counts
NAMED_BARRIERS = 16
CLAIMED_MOST = 1023
"""Parts whose counts of those that are there, that have looked and that have a share fit a word."""


class BarrierInitOp(Instruction, name="barrier_init"):
    """Makes 8 bytes of shared memory an mbarrier whose phases end after `count` arrivals.

    In a fallback cluster they end after `fallback` arrivals, if given.
    """

    barrier: ext.Operand[Any]
    count: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_range(
            self, "count", 1, ARRIVALS_MAX
        )


class WaitBarrierOp(Instruction, name="wait_barrier"):
    """Waits until the mbarrier's phase of that parity has ended, and acquires what came before.

    `scope` is "cta", or "cluster" where threads of other CTAs arrive.
    """

    barrier: ext.Operand[Any]
    parity: ext.Operand[I32]
    scope: ir.StringAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_choice(self, "scope", SCOPES)


class ExpectTxOp(Instruction, name="expect_tx"):
    """The running phase also waits for `bytes` bytes of asynchronous copies."""

    barrier: ext.Operand[Any]
    bytes: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_range(
            self, "bytes", 0, TRANSACTION_MAX
        )


class ArriveExpectTxOp(Instruction, name="arrive_expect_tx"):
    """One arrival, once the phase waits for `bytes` bytes of asynchronous copies."""

    barrier: ext.Operand[Any]
    bytes: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_range(
            self, "bytes", 0, TRANSACTION_MAX
        )


class ExpectMoreOp(ExpectTxOp, name="expect_more"):
    """Like `sm.expect_tx`, but expects `more` additional bytes."""

    more: ext.Operand[I32]


class ArriveExpectMoreOp(ArriveExpectTxOp, name="arrive_expect_more"):
    """Like `sm.arrive_expect_tx`, but expects `more` additional bytes."""

    more: ext.Operand[I32]


class ArriveOp(Instruction, name="arrive"):
    """One arrival at an mbarrier of this CTA or, by `sm.mapa`, of another; releases to `scope`."""

    barrier: ext.Operand[Any]
    scope: ir.StringAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED, CLUSTER) and verify_choice(
            self, "scope", SCOPES
        )


class FenceOp(Instruction, name="fence"):
    """Orders what this thread did with what comes after it.

    "async_shared" puts its writes to shared memory before accesses by the async proxy,
    "mbarrier_init" its barriers before their use by the cluster. "tcgen05_before" and
    "tcgen05_after" stand on either side of a barrier that orders tensor-core instructions.
    """

    kind: ir.StringAttr

    def verify_invariants(self) -> bool:
        return verify_choice(self, "kind", FENCES)


class CountArrivalOp(Instruction, name="count_arrival"):
    """Threads for which `counts` holds add one to `word`; `last` is true in the last of `parts`,
    which resets the word to 0.

    A thread releases to the GPU what came before, its own and what a barrier has shown it, and
    acquires what the threads released that counted before it.
    """

    word: ext.Operand[Any]
    counts: ext.Operand[I1]
    parts: ir.IntegerAttr
    last: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "word", GLOBAL) and verify_range(self, "parts", 1, 2**31 - 1)


class ClaimPartsOp(Instruction, name="claim_parts"):
    """Tells the threads for which `counts` holds which of `parts` equal shares are theirs: from
    `first` on, below `end`.

    Such a thread stands for its CTA. It counts itself in at `word`, and polls the word, up to
    `polls` times, until all parts have done so. If it has seen all of them, it claims one share,
    the next. The last of all CTAs to come to this also takes the shares that are left, and resets
    the word to 0. So each share is taken, whoever gave up. The thread releases to the GPU what came
    before, its own and what a barrier has shown it, and acquires what the others released.
    """

    word: ext.Operand[Any]
    counts: ext.Operand[I1]
    parts: ir.IntegerAttr
    polls: ir.IntegerAttr
    first: ext.Result[I32] = ext.infer_result()
    end: ext.Result[I32] = ext.infer_result()

    def verify_invariants(self) -> bool:
        fits = verify_range(self, "parts", 1, CLAIMED_MOST) and verify_range(
            self, "polls", 0, 2**20
        )
        return fits and verify_pointer(self, "word", GLOBAL)


class AnyBarrierOp(Instruction, name="any_barrier"):
    """Like `sm.named_barrier`; `holds` says whether `flag` is true in any of the threads."""

    flag: ext.Operand[I1]
    id: ir.IntegerAttr
    threads: ir.IntegerAttr
    holds: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        return _verify_meeting(self)


class NamedBarrierOp(Instruction, name="named_barrier"):
    """`threads` threads of the CTA, whole warps, meet at its barrier `id`."""

    id: ir.IntegerAttr
    threads: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return _verify_meeting(self)


class PartBarrierOp(Instruction, name="part_barrier"):
    """`threads` threads of the CTA, the `part`-th of `parts` sets of whole warps, meet alone.

    Barriers `id` to `id` + `parts` - 1 of the CTA are for this alone, one for each set.
    """

    part: ext.Operand[I32]
    id: ir.IntegerAttr
    parts: ir.IntegerAttr
    threads: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return _verify_parts(self)


class AnyPartBarrierOp(Instruction, name="any_part_barrier"):
    """As `sm.part_barrier`; `holds` is whether `flag` does in one of the threads that meet."""

    flag: ext.Operand[I1]
    part: ext.Operand[I32]
    id: ir.IntegerAttr
    parts: ir.IntegerAttr
    threads: ir.IntegerAttr
    holds: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        return _verify_parts(self)


class AwaitTurnOp(Instruction, name="await_turn"):
    """The threads of the `turn`-th of so many warpgroups wait until they have been given the turn.

    Barriers `id` to `id` + `turns` - 1 of the CTA are for this alone.
    """

    turn: ext.Operand[I32]
    id: ir.IntegerAttr
    turns: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return _verify_turns(self)


class GiveTurnOp(Instruction, name="give_turn"):
    """The threads of a warpgroup give the turn to the `turn`-th one, and go on."""

    turn: ext.Operand[I32]
    id: ir.IntegerAttr
    turns: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return _verify_turns(self)


class CtaBarrierOp(Instruction, name="cta_barrier"):
    """All threads of the CTA meet."""


class ClusterBarrierOp(Instruction, name="cluster_barrier"):
    """All threads of the cluster meet.

    If it `releases`, all of them may read afterwards what one of them wrote before. If not, they
    may only use the mbarriers that `sm.fence "mbarrier_init"` has ordered; the barrier then waits
    for nothing that is in flight.
    """

    releases: ir.IntegerAttr


class AwaitGridsOp(Instruction, name="await_grids"):
    """Waits for the grids that this one depends on, where it is launched before they end."""


class LaunchDependentsOp(Instruction, name="launch_dependents"):
    """Lets the grids that depend on this one start, once every CTA has come here or ended."""


def _verify_turns(op: AwaitTurnOp | GiveTurnOp) -> bool:
    """Barrier 0 is that of all threads."""
    if not verify_range(op, "turns", 2, NAMED_BARRIERS - 1):
        return False
    return verify_range(op, "id", 1, NAMED_BARRIERS - op.turns.value)


def _verify_meeting(op: NamedBarrierOp | AnyBarrierOp) -> bool:
    if not verify_range(op, "id", 0, NAMED_BARRIERS - 1):
        return False
    return _verify_threads(op)


def _verify_parts(op: PartBarrierOp | AnyPartBarrierOp) -> bool:
    """Barrier 0 is that of all threads."""
    if not verify_range(op, "parts", 2, NAMED_BARRIERS - 1):
        return False
    if not verify_range(op, "id", 1, NAMED_BARRIERS - op.parts.value):
        return False
    return _verify_threads(op)


def _verify_threads(
    op: NamedBarrierOp | AnyBarrierOp | PartBarrierOp | AnyPartBarrierOp,
) -> bool:
    threads = op.threads.value
    if threads % 32 or not 32 <= threads <= 1024:
        return refuse(op, f"threads must be whole warps, 32 to 1024, got {threads}")
    return True

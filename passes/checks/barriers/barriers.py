"""Checks that as many threads arrive at each barrier as complete its phase.

    arrivals   one for each thread that arrives on a slot's barrier in a phase, in all CTAs that do:
               full    the lane that tells TMA's bytes, of a pair the leader's, of pieces loaded
                       ahead each its own; each warp that copies or hands over a turn; the commit
                       after MMAs
               empty   the commit of each CTA whose MMAs read what this one loaded, or its warps,
                       where they wait for MMAs; each warp that reads sums; each reader of a claim
    under way  slots being copied leave two for the reader, who holds one while it waits for more
    done       sums in no ring have the barrier `mma.done`, of one slot and one arrival

Counts follow from the regions that `assign-threads` made and from which CTAs a load reaches, by
places in the cluster one after the other, and not from the formulas of `plan-memory`.
"""

from __future__ import annotations

from typing import Any

from ....dialects.fallback import arrivals_in_fallback, fallback_of
from ....dialects.mlir import ir
from ....dialects.pipe import ClaimOp, ForEachClaimOp
from ....dialects.sm.barriers import AwaitGridsOp
from ....dialects.sm.memory import BarriersOp, ColumnsOp, is_claim
from ....dialects.sm.ring_memory import AheadRingOp, RingOp, TurnsOp
from ....dialects.sm.threads import ISSUER, TEAM, WarpsOp, who_runs
from ....dialects.target import WARP_THREADS, Target
from ....dialects.tile import KernelOp, PairMmaOp, TmaMulticastOp
from ....dialects.tile_types import AccumulatorType, integers_of
from ...base import defining_op, refused, target_of, walk
from ...plan import MMA_DONE
from ...ring_fills import has_copies, releases
from .early_loads import check_early
from .ends import check_ends
from .phases import check_phases

Place = tuple[int, int]


def check_barriers(module: ir.Module) -> None:
    """Refuse, at the op, barriers of a planned kernel that wait for more or fewer arrivals."""
    for kernel in module.body.operations:
        if not isinstance(kernel, KernelOp) or not walk(kernel, BarriersOp):
            continue
        if has_phases(kernel):
            check_phases(kernel)
            check_ends(kernel)
            check_early(kernel)
        else:
            Counts(kernel, target_of(module)).check()
            if fallback_of(kernel) is not None:
                Counts(kernel, target_of(module), of_fallback=True).check()


def has_phases(kernel: KernelOp) -> bool:
    """Whether `pipes-to-barriers` has been on the kernel: it then waits for the grids before."""
    return any(isinstance(op, AwaitGridsOp) for op in kernel.body.blocks[0].operations)


class Counts:
    """A cluster of one kernel: its places along M and N, and whether they are paired along M."""

    def __init__(self, kernel: KernelOp, target: Target, of_fallback: bool = False) -> None:
        self.kernel, self.target, self.of_fallback = kernel, target, of_fallback
        smaller = fallback_of(kernel) if of_fallback else None
        m, n, self.depth = smaller or integers_of(kernel.cluster)
        self.places = [(x, y) for y in range(n) for x in range(m)]
        self.pair = bool(walk(kernel, PairMmaOp))
        self.axes = {load.axis.value for load in walk(kernel, TmaMulticastOp)}

    def check(self) -> None:
        """Check all rules."""
        for ring in walk(self.kernel, RingOp | TurnsOp):
            commits, releases = _ops(ring, "commit"), _ops(ring, "release")
            if isinstance(ring, RingOp) and is_claim(ring.ring.type.tiles[0]):
                self._compare(ring.full, 1)
                self._compare(ring.empty, self._claims(ring))
                continue
            for op in commits:
                self._compare(ring.full, self._full(op))
            for op in releases:
                self._compare(ring.empty, self._empty(ring, op))
            if isinstance(ring, RingOp):
                _check_under_way(ring)
        for ring in walk(self.kernel, AheadRingOp):
            self._compare(ring.full, 1)
        self._check_done()

    def _compare(self, barriers: ir.Value, arrivals: int) -> None:
        op = defining_op(barriers)
        in_fallback = arrivals_in_fallback(op) if self.of_fallback else None
        count = op.arrivals.value if in_fallback is None else in_fallback
        if count != arrivals:
            raise refused(
                op,
                f"arrivals: {op.label.value!r} gets {arrivals} in a phase, got a count of "
                f"{count}; wait for as many",
            )

    def _full(self, op: Any) -> int:
        by_warp = who_runs(op) == TEAM
        return _warps(op) * (2 if self.pair else 1) if by_warp else 1

    def _empty(self, ring: Any, op: Any) -> int:
        payload = ring.ring.type.tiles[0]
        if isinstance(ring, TurnsOp):
            return _warps(op)
        if isinstance(payload, AccumulatorType):
            return _warps(op) * (2 if self.pair else 1)
        return releases(ring.ring, _warps(op), len(self._issuers_of((0, 0))), self.target)

    def _issuers_of(self, place: Place) -> set[Place]:
        """The CTAs whose MMAs read what the CTA at a place has loaded: their own for themselves."""
        readers = {there for there in self.places if self._reaches(place, there)}
        if not self.pair:
            return readers
        return {(x - x % 2, y) for x, y in readers}

    def _reaches(self, here: Place, there: Place) -> bool:
        """Whether a load here writes to a slot there: along N of A, along M of B."""
        if here == there:
            return True
        if "n" in self.axes and here[0] == there[0]:
            return True
        every = 2 if self.pair else 1
        return "m" in self.axes and here[1] == there[1] and here[0] % every == there[0] % every

    def _claims(self, ring: RingOp) -> int:
        """Every CTA's reader of answers, and the one who asked."""
        ctas, total = len(self.places) * self.depth, 0
        for op in [use.owner.opview for use in ring.ring.uses]:
            if isinstance(op, ClaimOp):
                total += ctas
            elif isinstance(op, ForEachClaimOp):
                total += _claim_arrivals(op) * (ctas // 2 if _is_issuer(op) else ctas)
        return total

    def _check_done(self) -> None:
        barriers = [op for op in walk(self.kernel, BarriersOp) if op.label.value == MMA_DONE]
        alone = [op for op in walk(self.kernel, ColumnsOp) if not _is_in_ring(op)]
        if alone and not barriers:
            raise refused(
                alone[0], f"done: sums in no ring need the barrier {MMA_DONE!r}, got none; add it"
            )
        for op in barriers:
            if (op.slots.value, op.arrivals.value) != (1, 1):
                got = f"{op.slots.value} and {op.arrivals.value}"
                raise refused(op, f"done: must have one slot and one arrival, got {got}")


def _ops(ring: Any, end: str) -> list[Any]:
    return [use.owner.opview for use in ring.ring.uses if use.owner.name == f"pipe.{end}"]


def _check_under_way(ring: RingOp) -> None:
    under_way, stages = ring.under_way.value, ring.ring.type.stages
    most = max(0, stages - 2) if has_copies(ring.ring) else 0
    if under_way > most:
        raise refused(
            ring, f"under way: at most {most} of {stages} slots here, got {under_way}; lower it"
        )


def _warps(op: Any) -> int:
    """Warps of the team that an op stands in."""
    parent = op.operation.parent
    while not isinstance(parent.opview, WarpsOp | KernelOp):
        parent = parent.parent
    team = parent.opview
    return team.warps.value if isinstance(team, WarpsOp) else team.threads.value // WARP_THREADS


def _claim_arrivals(op: ForEachClaimOp) -> int:
    return _warps(op) if who_runs(op) == TEAM else 1


def _is_issuer(op: Any) -> bool:
    return who_runs(op) == ISSUER


def _is_in_ring(op: ColumnsOp) -> bool:
    return any(use.owner.name == "sm.ring" for use in op.acc.uses)

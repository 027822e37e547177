"""Checks of barrier phases, by counting waits and arrivals, after pipes are lowered.

    source     a barrier's index comes from a position in as many slots, and what is waited for from
               the same reading of it: the parity of a full barrier, of an empty one that before
    visit      at a slot an agent waits once for a barrier, before it takes the slot, then goes on;
               a loop or branch leaves no slot half way
    arrivals   the arrivals of all agents at a slot are as many as its barrier waits for, and the
               same each time
    bytes      as many bytes are expected as loads, or launch control, bring while a slot is filled

An agent is what `sm.warps` runs, after what a lane of it does early, or the kernel. Its program is
read in order, loop bodies once: between two advances of a position it is at one slot. Who hears of
an arrival is found by placing the op in each CTA of the cluster in turn: by masks, by `sm.mapa`, by
the leader CTA's region.
Agents that pass by slots where they do nothing leave them to each other: they count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from ....dialects import sm
from ....dialects.fallback import arrivals_in_fallback
from ....dialects.mlir import ir, scf
from ....dialects.sm.memory import CLAIM_BYTES, BarriersOp, ScaleColumnsOp
from ....dialects.sm.positions import PEERS
from ....dialects.sm.ring_memory import AheadRingOp
from ....dialects.sm.threads import FIRST, ISSUER, TEAM, WARP, WARPGROUP, RunOp, WarpsOp, who_runs
from ....dialects.target import WARP_THREADS, WARPGROUP_WARPS
from ....dialects.tile import KernelOp
from ....dialects.tile.boxes import GatherBoxesOp, LoadBoxesOp, MulticastBoxesOp
from ....dialects.tile.edges import EdgeBoxesOp, EdgeMulticastBoxesOp
from ....dialects.tile.level import LevelBoxesOp
from ....dialects.tile.scales import SCALED_MMAS
from ...base import defining_op, refused, walk
from ...clone import constant_of
from ...cluster import Cluster
from ...plan import cluster_of, fallback_cluster_of
from ...thread_rules import program
from .barrier_sources import (
    bytes_by_rows,
    is_empty,
    label_of,
    parity_of,
    said_by,
    shown_bytes,
    source_of,
)
from .cta_ranks import itself, leader_of, ranks_in_mask
from .early_loads import early_of
from .visits import Agent, Signals, Visit, most_of, only_empties


def check_phases(kernel: KernelOp) -> None:
    """Refuse, at the op, a kernel of barriers that breaks a rule, in either of its clusters."""
    cluster, fallback = cluster_of(kernel), fallback_cluster_of(kernel)
    _Phases(kernel, cluster).check()
    if fallback is not None:
        _Phases(kernel, fallback, of_fallback=True).check()


class _Phases:
    def __init__(self, kernel: KernelOp, cluster: Cluster, of_fallback: bool = False) -> None:
        self.kernel, self.cluster, self.of_fallback = kernel, cluster, of_fallback
        self.ranks = list(range(self.cluster.size))
        self.agent = Agent(kernel)
        self.agents = [self.agent]
        self.waiting: dict[ir.Value, set[int]] = {}

    def check(self) -> None:
        """Check all rules."""
        self._walk(self.kernel.body.blocks[0])
        self._close(self.agent, "the program")
        for op in self.kernel.body.blocks[0].operations:
            if isinstance(op, BarriersOp):
                self._compare(op)

    def _walk(self, block: ir.Block) -> None:
        for op in program(block):
            rule = RULES.get(type(op))
            if rule is not None:
                rule(self, op)

    def team(self, op: WarpsOp) -> None:
        """Each agent begins where the kernel's rings are empty."""
        outer, self.agent = self.agent, Agent(op)
        self.agents.append(self.agent)
        early = early_of(self.kernel, op)
        if early is not None:
            self._walk(early.body.blocks[0])
        self._walk(op.body.blocks[0])
        self._close(self.agent, "the program")
        self.agent = outer

    def region(self, op: Any) -> None:
        self._walk(op.body.blocks[0])

    def loop(self, op: scf.ForOp) -> None:
        self._balanced(op.body, "the iteration")

    def repeat(self, op: scf.WhileOp) -> None:
        self._balanced(op.before.blocks[0], "the iteration")
        self._balanced(op.after.blocks[0], "the iteration")

    def branch(self, op: scf.IfOp) -> None:
        self._balanced(op.operation.regions[0].blocks[0], "the branch")

    def _balanced(self, block: ir.Block, what: str) -> None:
        """A body that is run any number of times leaves no slot half way."""
        outer, self.agent.open = self.agent.open, {}
        self._walk(block)
        self._close(self.agent, what)
        self.agent.open = outer

    def _close(self, agent: Agent, what: str) -> None:
        for visit in agent.open.values():
            raise refused(
                visit.last,
                f"visit: the position must go on before {what} ends, got no sm.advance_position "
                "after it; add one",
            )

    def wait(self, op: sm.WaitBarrierOp) -> None:
        barriers, read = source_of(op, op.barrier)
        before = is_empty(barriers)
        if parity_of(op.parity) != (read.operation, before):
            which = "the phase before (xor 1) of" if before else "the phase of"
            raise refused(
                op,
                f"source: {label_of(barriers)!r} is waited for by {which} the reading that the "
                "index is from, got another parity; take that one",
            )
        visit = self._visit(read.position)
        if barriers in visit.waits:
            raise refused(
                op,
                f"visit: at a slot an agent waits once for {label_of(barriers)!r}, got a second "
                "wait before the position goes on; advance it between the two",
            )
        visit.waits[barriers] = visit.last = op
        self.waiting.setdefault(barriers, set()).update(self._runs(op))

    def place(self, op: Any) -> None:
        """Every thread has a position or tally from the start."""
        if op.operation.parent != self.kernel.operation:
            raise refused(op, "place: must stand in the kernel itself, got it inside another op")

    def slot(self, op: sm.SlotOp) -> None:
        """A slot is there once the agent has waited for one of its barriers."""
        ring, read = defining_op(op.ring), defining_op(op.index)
        if isinstance(ring, sm.StagingOp) or (_is_ahead(ring) and _is_loaded(op)):
            return
        place = read.position if isinstance(read, sm.ReadPositionOp) else None
        waits = self.agent.open[place].waits if place in self.agent.open else {}
        barriers = [ring.full] if _is_ahead(ring) else [ring.full, ring.empty]
        if not set(barriers) & waits.keys():
            labels = " or ".join(repr(label_of(each)) for each in barriers)
            raise refused(
                op,
                f"visit: a slot is taken once {labels} "
                "has been waited for at its index, got no such wait before; add it",
            )

    def scales(self, op: Any) -> None:
        """A K step's scales go to a place once the MMAs that read it before are done."""
        columns = next((c for c in walk(self.kernel, ScaleColumnsOp) if c.empty is not None), None)
        if columns is None and op.place is None:
            return
        read = defining_op(op.place) if op.place is not None else None
        at = read.position if isinstance(read, sm.ReadPositionOp) else None
        waits = self.agent.open[at].waits if at in self.agent.open else {}
        if columns is None or columns.empty not in waits:
            raise refused(
                op,
                "visit: scales go to a place of sm.scale_columns once its barrier has been waited "
                "for at that index, got no such wait before; add it",
            )

    def _visit(self, place: ir.Value) -> Visit:
        return self.agent.open.setdefault(place, Visit())

    def advance(self, op: sm.AdvancePositionOp) -> None:
        """The agent leaves the slot: it has done there what it does each time."""
        place = op.position
        visit = self.agent.open.pop(place, None)
        if visit is None:
            self.agent.passes_by.add(place)
            return
        if only_empties(visit):
            return
        self._check_bytes(visit)
        known = self.agent.done.setdefault(place, visit)
        for barriers in known.arrivals | visit.arrivals:
            here, there = (each.arrivals.get(barriers, Counter()) for each in (visit, known))
            if here != there:
                raise refused(
                    op,
                    f"arrivals: {label_of(barriers)!r} must get as many at each slot, got "
                    f"{most_of(there)} at one and {most_of(here)} here; arrive alike",
                )

    def _check_bytes(self, visit: Visit) -> None:
        for barriers in visit.expected | visit.brought:
            expected, brought = (
                each.get(barriers, Counter()) for each in (visit.expected, visit.brought)
            )
            if +expected != +brought:
                label, come = label_of(barriers), shown_bytes(brought)
                raise refused(
                    visit.signals[barriers],
                    f"bytes: {label!r} gets {come} bytes at a slot, got "
                    f"{shown_bytes(expected)} expected; expect as many as the loads bring",
                )

    def arrive(self, op: sm.ArriveOp) -> None:
        mapped = defining_op(op.barrier)
        around = mapped.rank.owner if isinstance(mapped, sm.MapaOp) else None
        if isinstance(around, ir.Block):
            mask = around.owner.opview.mask
            self._signal(op, mapped.address, "arrivals", 1, self._ranks_of(op, mask))
        else:
            self._signal(op, op.barrier, "arrivals", 1)

    def expect(self, op: sm.ExpectTxOp | sm.ArriveExpectTxOp) -> None:
        self._signal(op, op.barrier, "expected", op.bytes.value)
        for most, bytes_ in bytes_by_rows(op):
            self._signal(op, op.barrier, "expected", bytes_, most=most)

    def arrive_expecting(self, op: sm.ArriveExpectTxOp) -> None:
        self._signal(op, op.barrier, "arrivals", 1)
        self.expect(op)

    def commit(self, op: sm.CommitOp) -> None:
        to = itself if op.mask is None else self._ranks_of(op, op.mask)
        self._signal(op, op.barrier, "arrivals", 1, to)

    def load(self, op: LoadBoxesOp | GatherBoxesOp) -> None:
        self._signal(op, op.barrier, "brought", op.bytes, most=op.most_rows)

    def multicast(self, op: MulticastBoxesOp) -> None:
        if said_by(op, op.mask) != (PEERS, [axis := op.axis.value]):
            raise refused(op, f"source: the mask must be of the peers along {axis!r}, got another")
        to = self._ranks_of(op, op.mask)
        parts = op.parts.value // len(to(0))  # that each loads: the line has fewer in a fallback
        self._signal(op, op.barrier, "brought", parts * op.bytes, to, most=op.most_rows)

    def claim(self, op: sm.TryCancelOp) -> None:
        to = (lambda _: self.ranks) if op.multicast.value else itself
        self._signal(op, op.barrier, "brought", CLAIM_BYTES, to)

    def _signal(
        self,
        op: Any,
        barrier: ir.Value,
        what: str,
        amount: int,
        to: Callable[[int], list[int]] | None = None,
        most: int = 0,
    ) -> None:
        """Count what every CTA that runs the op tells barriers, by the rank of their CTA."""
        whose, own = self._hears(barrier)
        barriers, read = source_of(op, own)
        signals: Signals = Counter()
        each = amount * self._times(op) // _slots_of_warpgroups(read)
        for rank in self._runs(op):
            for there in (to or itself)(rank):
                hears = (whose(there), most) if most else whose(there)
                signals[hears] += each
        self._visit(read.position).add(what, barriers, signals, op)

    def _hears(self, barrier: ir.Value) -> tuple[Callable[[int], int], ir.Value]:
        """Of which CTA the barrier is, by the rank of who names it; and the one in its own CTA."""
        op = defining_op(barrier)
        if isinstance(op, sm.LeaderBarrierOp):
            return leader_of, op.barrier
        if not isinstance(op, sm.MapaOp):
            return lambda rank: rank, barrier
        known = constant_of(op.rank)
        if isinstance(defining_op(op.rank), sm.LeaderRankOp):
            return leader_of, op.address
        if known is None:
            raise refused(op, "source: must be of a rank that is known, got another; name it")
        return (lambda _: known), op.address

    def _times(self, op: Any) -> int:
        """Arrivals of one CTA: of each warp, thread or of one lane; bytes of a gather are all's."""
        by = "" if isinstance(op, GatherBoxesOp) else who_runs(op)
        if by == WARP:
            return self._warps()
        if by == WARPGROUP:
            return self._warps() // WARPGROUP_WARPS
        return self._warps() * WARP_THREADS if by == TEAM else 1

    def _warps(self) -> int:
        team = self.agent.op
        return team.warps.value if isinstance(team, WarpsOp) else team.threads.value // WARP_THREADS

    def _runs(self, op: Any) -> list[int]:
        """The CTAs that run an op."""
        by, ranks = who_runs(op), self.ranks
        if by == FIRST:
            return ranks[:1]
        return [rank for rank in ranks if leader_of(rank) == rank] if by == ISSUER else ranks

    def _ranks_of(self, op: Any, mask: ir.Value) -> Callable[[int], list[int]]:
        return partial(ranks_in_mask, self.cluster, *said_by(op, mask))

    def _compare(self, op: BarriersOp) -> None:
        """The arrivals of all agents in a phase, where somebody waits for it."""
        count, arrivals = self._count_of(op), self._arrivals(op)
        waiting = self.waiting.get(op.barriers, set())
        if arrivals and not waiting:
            raise refused(
                op, f"visit: somebody must wait for {op.label.value!r}, got none; wait for it"
            )
        for rank in waiting:
            if arrivals[rank] != count:
                raise refused(
                    op,
                    f"arrivals: {op.label.value!r} gets {arrivals[rank]} in a phase, got a count "
                    f"of {count}; wait for as many",
                )

    def _count_of(self, op: BarriersOp) -> int:
        in_fallback = arrivals_in_fallback(op) if self.of_fallback else None
        return op.arrivals.value if in_fallback is None else in_fallback

    def _arrivals(self, op: BarriersOp) -> Signals:
        total: Signals = Counter()
        in_turns: set[ir.Value] = set()
        for agent in self.agents:
            for place, visit in agent.done.items():
                signals = visit.arrivals.get(op.barriers)
                if signals is None or place in in_turns:
                    continue
                total.update(signals)
                in_turns |= {place} & agent.passes_by
        return total


def _is_ahead(ring: Any) -> bool:
    """Whether only the arrival of a piece in a slot has a barrier."""
    return isinstance(ring, AheadRingOp)


def _slots_of_warpgroups(read: sm.ReadPositionOp) -> int:
    """At how many slots the warpgroups are that read a position, one at each; else 1."""
    place = defining_op(read.position)
    return place.stages.value if isinstance(place, sm.WarpgroupPositionOp) else 1


def _is_loaded(slot: sm.SlotOp) -> bool:
    """Whether a slot is taken for TMA to load into."""
    tiles = [use.owner.opview.tile for use in slot.slot.uses]
    users = [use.owner.opview for tile in tiles for use in tile.uses]
    return bool(users) and all(isinstance(user, LoadBoxesOp | GatherBoxesOp) for user in users)


RULES: dict[type, Callable[[Any, Any], None]] = {
    WarpsOp: _Phases.team,
    RunOp: _Phases.region,
    sm.EachRankOp: _Phases.region,
    scf.ForOp: _Phases.loop,
    scf.WhileOp: _Phases.repeat,
    scf.IfOp: _Phases.branch,
    sm.WaitBarrierOp: _Phases.wait,
    sm.SlotOp: _Phases.slot,
    **dict.fromkeys(SCALED_MMAS, _Phases.scales),
    sm.PositionOp: _Phases.place,
    sm.WarpgroupPositionOp: _Phases.place,
    sm.TallyOp: _Phases.place,
    sm.AdvancePositionOp: _Phases.advance,
    sm.ArriveOp: _Phases.arrive,
    sm.ExpectTxOp: _Phases.expect,
    sm.ArriveExpectTxOp: _Phases.arrive_expecting,
    sm.ExpectMoreOp: _Phases.expect,
    sm.ArriveExpectMoreOp: _Phases.arrive_expecting,
    sm.CommitOp: _Phases.commit,
    LoadBoxesOp: _Phases.load,
    LevelBoxesOp: _Phases.load,
    EdgeBoxesOp: _Phases.load,
    EdgeMulticastBoxesOp: _Phases.multicast,
    GatherBoxesOp: _Phases.load,
    MulticastBoxesOp: _Phases.multicast,
    sm.TryCancelOp: _Phases.claim,
}

"""The events of one launch that order accesses, and the shadows that check them.

Warps are the agents; their lanes are distinguished where only some of them synchronise. Barriers,
mbarriers and memory locations carry messages from those that release to those that acquire. An
operation of an engine is ordered behind what its warp knew when it issued it. Its accesses become
known through the mbarrier that it signals, its commit, or the wait for its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

import numpy as np

from ...interface import Cluster, Cta, EngineOp, Launch, Warp
from ...machine.events import Listener
from ...machine.mbarrier import Mbarrier
from ...machine.memory import Region
from ...ptx.lanes import WARP_SIZE
from ..fences.shared_rules import SharedRules
from ..fences.tensor_fences import PastAccess
from .accesses import Accesses
from .actor import LINE_BITS, PendingOperation, describe, line_of
from .clock import (
    ASYNC,
    ASYNC_GLOBAL,
    CP_ASYNC,
    HAPPENED,
    KNOWN,
    OUT,
    OVER,
    OWN_CLUSTER,
    OWN_CTA,
    REACH,
    Domain,
    Event,
    Message,
)
from .exits import ARRIVAL, check_exit, note
from .freed_pairs import check_freed, check_permit, note_taken
from .global_shadow import GlobalShadow
from .idle_reads import IdleReads
from .lane_times import lanes_of_mask, releasing
from .late_inits import LateInits
from .meetings import Meetings
from .places import Places
from .prerequisites import Prerequisites
from .releases import BarrierClock
from .shadow import SharedShadow
from .verdicts import NARROW_ARRIVAL, UNWAITED_STORE, late_wait, tensor_race, unmade, unseen_phase
from .warp_clock import WarpClock

_INITIALISED = "mbarrier.init"
_COVERED = {
    None: (ASYNC, ASYNC_GLOBAL),
    "global": (ASYNC_GLOBAL,),
    "shared::cta": (ASYNC,),
    "shared::cluster": (ASYNC,),
}
"""The rows of the clocks that a proxy fence raises, by its state space."""


class Races(Meetings, Listener):
    """The state of one launch. rules: those of shared memory, whose marks say which threads have
    not executed a proxy fence."""

    def __init__(self, launch: Launch, rules: SharedRules):
        super().__init__(launch)
        self._rules = rules
        self._domains: list[Domain] = []
        self._domain_of: dict[Cluster, Domain] = {}
        self._barriers: dict[Mbarrier, BarrierClock] = {}
        self._late_inits = LateInits()
        self._times: dict[tuple[Cluster, int, int], list[int]] = {}
        self._shadows: dict[Cta, SharedShadow] = {}
        self._prerequisites: Prerequisites | None = None
        self.places = Places(self, launch)

    # -- agents ----------------------------------------------------------------------------------

    def cluster_started(self, cluster: Cluster) -> None:
        warps = prod(cluster.shape) * -(-prod(self._launch.block) // WARP_SIZE)
        self._domain_of[cluster] = self._new_domain(2 * warps)

    def _new_domain(self, components: int) -> Domain:
        domain = Domain(len(self._domains), components)
        self._domains.append(domain)
        return domain

    def cta_started(self, cta: Cta) -> None:
        domain, warn = self._domain_of[cta.cluster], self._launch.warn
        size, proxy = len(cta.shared.data), self._rules.of[cta]
        shadow = self._shadows[cta] = SharedShadow(
            size, domain, f"cta {cta.index}", proxy, warn, self._rules.as_warning
        )
        cta.shared.watch(Accesses(self, self._launch, shadow, cta))

    def warp_started(self, warp: Warp) -> None:
        domain = self._domain_of[warp.cta.cluster]
        self._clocks[warp] = WarpClock(domain, describe(warp), warp.cta.rank, lambda: warp.live)

    def cta_exited(self, cta: Cta) -> None:
        known = (self._clocks[warp].wide() for warp in cta.warps)
        check_exit(cta, self._domain_of[cta.cluster], known, self._rules.as_warning)
        self._forget(cta)

    def _forget(self, cta: Cta) -> None:
        self._late_inits.forget(cta)
        del self._shadows[cta]
        for warp in cta.warps:
            del self._clocks[warp]
            self.places.forget(warp)
        for barrier in cta.mbarriers.values():
            del self._barriers[barrier]
        self.forget_meetings(cta)
        if all(each.exited for each in cta.cluster.ctas):
            self._forget_cluster(cta.cluster)

    def _forget_cluster(self, cluster: Cluster) -> None:
        """Forgets a cluster that has ended; marks in global memory keep its domain, by number."""
        del self._domain_of[cluster]
        self._meetings.pop(cluster, None)
        self._times = {key: times for key, times in self._times.items() if key[0] is not cluster}

    def bound(self) -> None:
        """Watches every array and variable of global memory that may be written."""
        watchers = {}
        for region in self._launch.global_memory.regions:
            if region.writable:
                shadow = GlobalShadow(region, self._domains, IdleReads(self, self._launch, region))
                watchers[region] = Accesses(self, self._launch, shadow)
                region.watch(watchers[region])
        self._await_grids(self._launch.arrays.awaited_regions(), watchers)

    def _await_grids(self, regions: list[Region], watchers: dict[Region, Accesses]) -> None:
        """Prerequisite grids work on these arrays until griddepcontrol.wait."""
        if not regions:
            return
        self._prerequisites = Prerequisites(self._new_domain(0))
        for region in regions:
            if region not in watchers:
                watchers[region] = Accesses(self, self._launch, None)
                region.watch(watchers[region])
            watcher = watchers[region]
            watcher.shadow = self._prerequisites.guarded(watcher.shadow, region.name)

    def grids_awaited(self, warp: Warp) -> None:
        if self._prerequisites is not None:
            self._prerequisites.waited(self._clocks[warp])

    # -- engine operations -------------------------------------------------------------------------

    def submitted(self, op: EngineOp) -> None:
        """The operation is ordered behind what its warp knows now."""
        warp = self._launch.current_warp
        if warp is not None:
            event = self._event_of(warp, op)
            if op.signals is not None:
                cta, offset = op.signals
                self._require_made(warp, cta.mbarriers.get(offset), op)
            lanes = releasing(warp)
            clock = self._clocks[warp]
            issued = clock.own, clock.time
            op.marks = PendingOperation(clock.release(lanes), warp.cta, issued)
            op.marks.event = event
            op.marks.lanes = lanes if op.joins and op.stream == (CP_ASYNC, None) else None
        elif self.operation is not None and self.operation.marks is not None:
            op.marks = PendingOperation(self.operation.marks.clock, self.operation.marks.issuer)

    def _event_of(self, warp: Warp, op: EngineOp) -> Event | None:
        """The next event of the operation's stream, or the newest one that there is."""
        if op.stream is None:
            return None
        kind, lane = op.stream
        key = kind if lane is None else f"{kind} {lane}"
        if op.joins:
            return self._clocks[warp].latest(key)
        return self._stream(warp, key, kind)

    def _stream(self, warp: Warp, key: str, kind: str) -> Event:
        event = self._clocks[warp].stream(key, lambda: f"{kind} of {describe(warp)}")
        if kind == CP_ASYNC:
            self._clocks[warp].domain.separate_lanes(event[0])
        return event

    def began(self, op: EngineOp) -> None:
        self.operation, self._engine = op, None
        if op.signals is not None and op.marks is not None:
            op.marks.event = self._signal_event(*op.signals)

    def completed(self, op: EngineOp) -> None:
        self.operation = None

    def _signal_event(self, cta: Cta, offset: int) -> Event | None:
        barrier = cta.mbarriers.get(offset)
        if barrier is None:
            return None
        clock = self._barriers[barrier]
        return clock.component, clock.time(barrier)

    def operations_awaited(self, warp: Warp, operations: list[EngineOp]) -> None:
        """The operations may have been issued by other warps."""
        newest: dict[int, EngineOp] = {}
        lanes = releasing(warp)
        if any(op.stream and op.stream[0] == "wgmma" for op in operations):
            self._clocks[warp].align()
        for op in operations:
            if op.marks is not None and op.marks.event is not None:
                earlier = newest.setdefault(op.marks.event[0], op)
                if earlier.marks.event < op.marks.event:
                    newest[op.marks.event[0]] = op
        for op in newest.values():
            self._clocks[warp].observe(op.marks.event, lanes, generic=op.generic)
            self._clocks[warp].saw(op.marks.clock)

    # -- mbarriers ---------------------------------------------------------------------------------

    def mbarrier_made(self, warp: Warp, cta: Cta, offset: int, barrier: Mbarrier) -> None:
        """The copies that signal the object get a component of their own."""
        key = (cta.cluster, cta.rank, offset)
        name = f"an operation that signals mbarrier 0x{offset:x} of cta {cta.index}"
        if key not in self._times:
            self._times[key] = [self._domain_of[cta.cluster].component(name), 0]
        known = self._times[key]
        made = self._stream(warp, _INITIALISED, _INITIALISED)
        self._clocks[warp].observe(made, releasing(warp), generic=True)
        self._barriers.setdefault(barrier, BarrierClock(*known)).made += (made,)
        self._late_inits.made(warp, barrier)
        self._clocks[warp].tick()

    def mbarrier_ended(self, warp: Warp, cta: Cta, offset: int, barrier: Mbarrier) -> None:
        """A later object at this place continues with later times."""
        self.mbarrier_used(warp, barrier, "mbarrier.inval")
        del self._barriers[barrier]
        known = self._times.get((cta.cluster, cta.rank, offset))
        if known is not None:
            known[1] += barrier.phase + 2

    def mbarrier_arriving(self, target: Cta, barrier: Mbarrier, passes_on: str, scope: str) -> None:
        warp, op = self._launch.current_warp, self.operation
        if op is not None:
            self._end_operation(op, target, barrier)
        elif warp is not None:
            self.mbarrier_used(warp, barrier, "an arrival")
            message = self._arrival_message(warp, target, passes_on, scope)
            self._refuse_early(barrier, message)
            self._barriers[barrier].arrive(message)

    def _refuse_early(self, barrier: Mbarrier, message: Message) -> None:
        """Traps for an arrival that may come before any wait has seen the previous phase
        complete."""
        line = self._barriers[barrier].unseen_by(message)
        if line is not None:
            with self._rules.as_warning("barrier-protocol"):
                raise unseen_phase(barrier, line)

    def _end_operation(self, op: EngineOp, target: Cta, barrier: Mbarrier) -> None:
        meant, clock = op.marks, self._barriers[barrier]
        if meant is None:
            return
        if op.commits and meant.issuer is target:
            self._refuse_early(barrier, meant.clock)
        if meant.event is not None:
            how = {"commits": op.commits, "generic": op.generic}
            for event in meant.events():
                clock.end_operation(meant.clock, event, **how)
        elif op.commits:  # of a thread that has issued nothing
            clock.arrive(meant.clock.copy())
        if meant.issuer is not target:
            time = clock.arrived(barrier, self._domain_of[target.cluster])
            commit = meant.issued if op.commits else None
            note(target, ARRIVAL, (clock.component, time), op.line, commit=commit)

    def _arrival_message(self, warp: Warp, target: Cta, passes_on: str, scope: str) -> Message:
        """What an arrival passes on; with the scope of a CTA it synchronises with no thread of
        another CTA (PTX ISA §8.7.1: the scope of each must include the other)."""
        clock = self._clocks[warp]
        if passes_on == "nothing":
            return clock.happening()
        lanes, distance = releasing(warp), OWN_CTA if target is warp.cta else OWN_CLUSTER
        if distance == OWN_CLUSTER:
            note(target, ARRIVAL, (clock.own, clock.time), line_of(warp))
        if passes_on == "released" and distance > REACH[scope]:
            return clock.release_narrow(lanes)
        return clock.release(lanes, relaxed=passes_on == "relaxed", distance=distance)

    def signalled(self, target: Cta, offset: int, barrier: Mbarrier, phase: int) -> None:
        """If its phase is complete, no waiter for the previous phase may still be under way."""
        if barrier.phase == phase:
            return
        clock = self._barriers[barrier]
        late = clock.late_waiter()
        if late is not None:
            with self._rules.as_warning("late-wait"):
                raise late_wait(barrier, self._domain_of[target.cluster].name(late[0]), late[1])
        clock.complete()

    def phase_seen(
        self, warp: Warp, lanes: Sequence[int], barrier: Mbarrier, relaxed: bool
    ) -> None:
        clock, known = self._clocks[warp], self._barriers[barrier]
        known.saw(clock.own, clock.time, line_of(warp))
        if known.done is not None:
            all_of_it = len(lanes) == warp.live.bit_count()
            clock.acquire(known.done, None if all_of_it else tuple(lanes), relaxed=relaxed)
        else:
            clock.tick()

    def mbarrier_used(self, warp: Warp, barrier: Mbarrier, what: str) -> None:
        self._require_made(warp, barrier, what)

    def _require_made(self, warp: Warp, barrier: Mbarrier | None, user: str | EngineOp) -> None:
        """Traps if one of the barrier's initialisations is not ordered before."""
        if barrier is None:
            return
        known, made = self.known(warp), self._barriers[barrier].made
        if made in known.initialised:
            return
        row = known.wide(self._clocks[warp].domain.width)[KNOWN]
        if any(int(row[component]) < time for component, time in made):
            what = user if isinstance(user, str) else user.name
            if not self._late_inits.tells(warp, barrier):
                raise unmade(what, barrier)
        known.initialised.add(made)

    # -- fences and memory orders ------------------------------------------------------------------

    def fenced(self, warp: Warp, order: str, scope: str) -> None:
        clock, lanes = self._clocks[warp], releasing(warp)
        if order != "release":
            clock.fence_acquire(lanes, REACH[scope])
        if order == "sc":
            self.places.fenced(warp, lanes, scope)
        if order != "acquire":
            clock.fence_release(lanes, REACH[scope])

    def proxy_fenced(self, warp: Warp, mask: np.ndarray, space: str | None) -> None:
        lanes, own_only = lanes_of_mask(warp, mask), space == "shared::cta"
        self._clocks[warp].fence_proxy(lanes, _COVERED[space], own_only=own_only)

    def tensor_fenced(self, warp: Warp, before: bool) -> None:
        if before:
            self._clocks[warp].fence_before()

    def mbarrier_init_fenced(self, warp: Warp) -> None:
        """Relaxed barriers that follow pass on the initialisations."""
        self._late_inits.fenced(warp)
        event = self._clocks[warp].latest(_INITIALISED)
        if event is not None:
            self._clocks[warp].note_released(event)

    # -- tensor memory -----------------------------------------------------------------------------

    def pair_asked(self, warp: Warp, peer: Cta, what: str) -> None:
        """PTX ISA §9.7.16.7.1: the issuing warp must make sure that the peer CTA has been
        launched."""
        with self._rules.as_warning("early-alloc"):
            self.require_started(warp, peer, what, "asks another for tensor memory with it")

    def pair_freed(self, warp: Warp, peer: Cta) -> None:
        check_freed(warp, peer, self._clocks[warp].row(HAPPENED))

    def permit_given_up(self, warp: Warp) -> None:
        check_permit(warp, self._clocks[warp].row(HAPPENED))

    def columns_allocated(self, warp: Warp, cta: Cta, offset: int, columns: int) -> None:
        """The result of tcgen05.alloc, for which the async proxy needs no fence."""
        clock, actor = self._clocks[warp], self.actor(warp)
        assert actor is not None  # a warp is one
        event = self._stream(warp, "tcgen05.alloc", "tcgen05.alloc")
        clock.observe(event, generic=False)
        actor.own, actor.when = event[0], event[1] << LINE_BITS | line_of(warp)
        what = "the result of tcgen05.alloc"
        self._shadows[cta].write(np.array([offset // 4]), 4, actor, what)
        note_taken(warp.cta, (clock.own, clock.time), columns, clock.row(HAPPENED))
        clock.tick()

    def now(self, warp: Warp) -> Event:
        """The event of what a warp does now."""
        return self._clocks[warp].own, self._clocks[warp].time

    def knows(self, warp: Warp, event: Event) -> bool:
        """Whether a warp is ordered behind an event of another one."""
        component, time = event
        row = self.known(warp).wide(self._clocks[warp].domain.width)[KNOWN]
        return int(row[component]) >= time

    def require_tensor(self, warp: Warp, past: PastAccess, what: str) -> None:
        """Traps if a warp's access to tensor memory is not ordered behind another warp's. Columns
        that were read may be overwritten once the read is over."""
        assert past.event is not None  # the race checks told it
        component, time = past.event
        rows = self.known(warp).wide(self._clocks[warp].domain.width)
        kinds = (OVER, OUT) if past.access.reads else (KNOWN, OUT)
        if max(int(rows[kind, component]) for kind in kinds) >= time:
            return
        over = int(rows[OVER, component]) >= time
        category = NARROW_ARRIVAL if over else None
        if past.issued is not None and self.knows(warp, past.issued):
            category = UNWAITED_STORE
        with self._rules.as_warning(category) if category else nullcontext():
            raise tensor_race(past.access, what, warp.cta, over=over)

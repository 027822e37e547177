"""The events of one launch that order accesses, and the shadows that check them.

Warps are the agents: the lanes of one warp count as ordered by program order. Barriers, mbarriers
and memory locations carry messages from those that release to those that acquire. An operation
of an engine is bound by what its warp knew when it issued it, and its accesses become known
through the mbarrier that it signals, its commit, or the wait for its group.
"""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...interface import Cta, EngineOp, Launch, Warp
from ...machine.mbarrier import Mbarrier
from ...machine.memory import Region
from ...tensor.tensor_fences import PastAccess
from ..proxy import SharedProxy
from .actor import Actor
from .clock import (
    HAPPENED,
    KNOWN,
    OUT,
    OWN_CLUSTER,
    OWN_CTA,
    REACH,
    Domain,
    Event,
    Message,
    WarpClock,
)
from .prerequisites import Prerequisites
from .releases import BarrierClock, Published, arrivals_from_afar
from .shadow import GlobalShadow, Same, SharedShadow
from .verdicts import LINE_BITS, late_arrival, late_wait, race

ACQUIRES = ("acquire", "acq_rel")
RELEASES = ("release", "acq_rel")
_INITIALISED = "mbarrier.init"


class Races:
    """State of one launch.

    operation: the one that an engine performs now; order: memory order of the strong access under
    way (None for a weak one), scope: its scope, updating: whether it is an atomic
    read-modify-write, comparing: whether it compares and swaps; mask: the lanes of
    the load under way, where known.
    """

    def __init__(self, launch: Launch):
        self._launch = launch
        self._domains: list[Domain] = []
        self._locations: dict[tuple, Published] = {}
        self._times: dict[tuple, list[int]] = {}
        self._prerequisites: Prerequisites | None = None
        self.operation: EngineOp | None = None
        self.order: str | None = None
        self.scope = "gpu"
        self.updating = self.comparing = False
        self.mask: np.ndarray | None = None

    # -- agents ----------------------------------------------------------------------------------

    def new_cluster(self, warps: int) -> Domain:
        """The components of a cluster that starts, with so many warps."""
        domain = Domain(len(self._domains), 2 * warps)
        self._domains.append(domain)
        return domain

    def new_warp(self, warp: Warp) -> WarpClock:
        """The clock of a warp that starts."""
        return WarpClock(warp.cta.cluster.domain, lambda: describe(warp), warp.cta.rank)

    def shared_shadow(self, cta: Cta, size: int, proxy: SharedProxy) -> SharedShadow:
        """The marks of the shared memory of a CTA."""
        warn = self._launch.warn
        return SharedShadow(size, cta.cluster.domain, f"cta {cta.index}", proxy, warn)

    def watch_global(self) -> None:
        """Watch every array and variable of global memory that may be written."""
        for region in self._launch.global_memory.regions:
            if region.writable:
                region.races = self
                region.shadow = GlobalShadow(len(region.data), self._domains, region.name)

    def await_grids(self, regions: list[Region]) -> None:
        """Prerequisite grids work on these arrays until griddepcontrol.wait."""
        if not regions:
            return
        self._prerequisites = Prerequisites(self.new_cluster(0))
        for region in regions:
            region.races = self
            region.shadow = self._prerequisites.guarded(region.shadow, region.name)

    def awaited_grids(self, warp: Warp) -> None:
        """A warp has executed griddepcontrol.wait."""
        if self._prerequisites is not None:
            self._prerequisites.waited(warp)

    def actor(self, warp: Warp | None = None, owner: Cta | None = None) -> Actor | None:
        """Who accesses memory now, of a CTA where it is shared: the operation under way, else the
        warp."""
        if self.operation is not None:
            return self._operating(self.operation)
        warp = warp or self._launch.current_warp
        if warp is None:
            return None
        clock = warp.clock
        when = clock.time << LINE_BITS | line_of(warp)
        strong = self.order is not None
        own = clock.own if owner is None or owner is warp.cta else clock.away()
        actor = Actor(clock.domain, own, when, clock.wide(), clock.others, strong)
        actor.together, actor.comparing = clock.together, self.comparing
        return actor

    def _operating(self, op: EngineOp) -> Actor | None:
        if op.clock is None or op.event is None:
            return None
        component, time = op.event
        when = time << LINE_BITS | op.origin.get("line", 0)
        strong, clock = self.order is not None, op.clock
        return Actor(clock.domain, component, when, clock.rows, clock.others, strong,
                     asynchronous=not op.generic)  # fmt: skip

    # -- engine operations -------------------------------------------------------------------------

    def submitted(self, op: EngineOp, warp: Warp | None) -> None:
        """An operation is issued: it is bound by what its warp knows now."""
        if warp is not None:
            op.issuer = warp.cta
            if op.signals is not None:
                self.used(warp, barrier_of(*op.signals), op.name)
            op.clock = warp.clock.release()
        elif self.operation is not None:
            op.clock, op.issuer = self.operation.clock, self.operation.issuer

    def begin(self, op: EngineOp) -> None:
        """An engine performs an operation now."""
        self.operation = op
        if op.signals is not None:
            op.event = self._signal_event(*op.signals)

    def end(self) -> None:
        self.operation = None

    def _signal_event(self, cta: Cta, offset: int) -> Event | None:
        barrier = barrier_of(cta, offset)
        if barrier is None or barrier.clock is None:
            return None
        return barrier.clock.component, barrier.clock.base + barrier.phase + 1

    @staticmethod
    def stream(warp: Warp, kind: str, lane: int | None = None) -> Event:
        """The event of the next operation of a kind that a warp (or one lane of it) issues."""
        return warp.clock.stream(_key(kind, lane), lambda: f"{kind} of {describe(warp)}")

    @staticmethod
    def latest(warp: Warp, kind: str, lane: int | None = None) -> Event | None:
        """The event of its newest operation of the kind, None if there is none."""
        return warp.clock.latest(_key(kind, lane))

    @staticmethod
    def observe(warp: Warp, operations: list[EngineOp]) -> None:
        """The warp has waited for these operations, which other warps may have issued."""
        newest: dict[int, EngineOp] = {}
        for op in operations:
            if op.event is not None:
                earlier = newest.setdefault(op.event[0], op)
                if earlier.event < op.event:
                    newest[op.event[0]] = op
        for op in newest.values():
            warp.clock.observe(op.event, generic=op.generic)
            if op.clock is not None:
                warp.clock.saw(op.clock)

    # -- mbarriers ---------------------------------------------------------------------------------

    def barrier_made(self, warp: Warp, cta: Cta, offset: int, barrier: Mbarrier) -> None:
        """mbarrier.init: the object's copies get a component of their own."""
        key = (id(cta.cluster), cta.rank, offset)
        name = f"an operation that signals mbarrier 0x{offset:x} of cta {cta.index}"
        if key not in self._times:
            self._times[key] = [cta.cluster.domain.component(lambda: name), 0]
        known = self._times[key]
        made = self.stream(warp, _INITIALISED)
        warp.clock.observe(made, generic=True)
        barrier.clock = BarrierClock(known[0], known[1], made)
        warp.clock.tick()

    def barrier_ended(self, cta: Cta, offset: int, barrier: Mbarrier) -> None:
        """mbarrier.inval: a later object at the place goes on with later times."""
        known = self._times.get((id(cta.cluster), cta.rank, offset))
        if known is not None:
            known[1] += barrier.phase + 2

    def arriving(self, barrier: Mbarrier, target: Cta, passes_on: str, scope: str) -> None:
        """An operation on an mbarrier, before it is performed (see `mbarrier.apply`)."""
        warp = self._launch.current_warp
        if warp is not None and self.operation is None:
            self.used(warp, barrier, "an arrival")
        if barrier.clock is None:
            return
        message, op = self._operation_message(), self.operation
        if op and op.event is not None and op.issuer is not target:
            arrivals_from_afar(target)[op.event[0]] = (op.event[1], op.origin.get("line", 0))
        if op is None and warp is not None:
            message = self._arrival_message(warp, target, passes_on, scope)
        if message is not None:
            barrier.clock.arrive(message)

    @staticmethod
    def _arrival_message(warp: Warp, target: Cta, passes_on: str, scope: str) -> Message:
        """An arrival whose scope is a CTA synchronises with no thread of another (PTX ISA §8.7.1:
        the scope of each must include the other)."""
        if passes_on == "nothing":
            return warp.clock.happening()
        distance = OWN_CTA if target is warp.cta else OWN_CLUSTER
        if distance == OWN_CLUSTER:
            arrivals_from_afar(target)[warp.clock.own] = (warp.clock.time, line_of(warp))
        if passes_on == "released" and distance > REACH[scope]:
            return warp.clock.release_narrow()
        return warp.clock.release(relaxed=passes_on == "relaxed", distance=distance)

    def _operation_message(self) -> Message | None:
        """What the completion of the operation under way passes on."""
        op = self.operation
        if op is None or op.clock is None or op.event is None:
            return None
        message = op.clock.copy() if op.commits else op.clock.happening()
        message.note(op.event, generic=op.generic)
        return message

    def completed(self, barrier: Mbarrier, target: Cta) -> None:
        """The current phase of an mbarrier is complete."""
        if barrier.clock is None:
            return
        late = barrier.clock.late_waiter()
        if late is not None:
            raise late_wait(barrier, target.cluster.domain.name(late[0]), late[1])
        barrier.clock.complete()

    @staticmethod
    def exiting(cta: Cta) -> None:
        """The last thread of a CTA exits: arrivals of other CTAs must have come before."""
        known = [warp.clock.row(HAPPENED) for warp in cta.warps]
        for component, (time, line) in arrivals_from_afar(cta).items():
            if max(int(row[component]) for row in known) < time:
                raise late_arrival(cta.cluster.domain.name(component), line)

    @staticmethod
    def waited(warp: Warp, barrier: Mbarrier, *, relaxed: bool) -> None:
        """A wait of a warp was answered with true."""
        if barrier.clock is None:
            return
        barrier.clock.saw(warp.clock.own, warp.clock.time, line_of(warp))
        if barrier.clock.done is not None:
            warp.clock.acquire(barrier.clock.done, relaxed=relaxed)
        else:
            warp.clock.tick()

    @staticmethod
    def used(warp: Warp, barrier: Mbarrier | None, what: str) -> None:
        """Trap if a warp uses an mbarrier whose initialisation is not ordered before."""
        if barrier is None or barrier.clock is None or barrier.clock.made is None:
            return
        component, time = barrier.clock.made
        if int(warp.clock.row(KNOWN)[component]) < time:
            raise Trap(
                "missing-fence",
                f"{what} uses {barrier.describe()}, whose mbarrier.init is not ordered before it;"
                f" a barrier must come between, and fence.mbarrier_init if the barrier is relaxed",
            )

    # -- fences and memory orders ------------------------------------------------------------------

    @staticmethod
    def fence(warp: Warp, order: str, scope: str) -> None:
        """fence.acquire, .release, .acq_rel, .sc of a scope."""
        if order != "release":
            warp.clock.fence_acquire(REACH[scope])
        if order != "acquire":
            warp.clock.fence_release(REACH[scope])

    @staticmethod
    def fence_mbarrier_init(warp: Warp) -> None:
        """fence.mbarrier_init: relaxed barriers that follow pass on the initialisations."""
        event = warp.clock.latest(_INITIALISED)
        if event is not None:
            warp.clock.note_released(event)

    def box(
        self, region: Region, offsets: np.ndarray, access: str, same: Same | None = None
    ) -> None:
        """A tensor copy under way reads or writes these bytes of a global array.

        same: tells which of the bytes keep their value.
        """
        actor = self.actor()
        if region.shadow is None or actor is None:
            return
        index, what = offsets.reshape(-1), f"the {access} of a tensor copy"
        if access == "read":
            region.shadow.read(index, 1, actor, what)
        else:
            region.shadow.write(index, 1, actor, what, same)

    def loaded(self, region: object, offsets: np.ndarray) -> None:
        """A strong load by a warp: acquire, or hold for a fence, what the places pass on."""
        warp = self._launch.current_warp
        if warp is None or self.operation is not None:
            return
        for offset in dict.fromkeys(offsets.tolist()):
            published = self._locations.get((id(region), offset))
            if published is not None:
                self._take_in(warp, published)

    def _take_in(self, warp: Warp, published: Published) -> None:
        distance = published.distance(warp.cta)
        message = published.messages[distance]
        if distance > REACH[self.scope]:
            warp.clock.saw(message)
            return
        relaxed = self.order not in ACQUIRES
        warp.clock.acquire(message, relaxed=relaxed, distance=distance)

    def stored(self, region: object, offsets: np.ndarray) -> None:
        """A strong store by a warp or a late one: the places pass on what it releases."""
        published = self._published()
        if published is None:
            return
        for offset in dict.fromkeys(offsets.tolist()):
            key = (id(region), offset)
            earlier = self._locations.get(key)
            if self.updating and earlier is not None:
                self._locations[key] = published.continued(earlier)
            else:
                self._locations[key] = published

    def _published(self) -> Published | None:
        """A late store releases what its warp knew when it was issued."""
        releases = self.order in RELEASES
        op, warp = self.operation, self._launch.current_warp
        if op is not None:
            message = self._operation_message() if releases and op.commits else None
            known = message is not None and op.issuer is not None
            return Published(op.issuer, (message, message, message)) if known else None
        if warp is None:
            return None
        reach = REACH[self.scope]
        return Published(warp.cta, warp.clock.releases(relaxed=not releases, reach=reach))

    def allocated(self, warp: Warp, target: Cta, offset: int) -> None:
        """tcgen05.alloc of a warp writes its result, of which the async proxy needs no fence."""
        event = self.stream(warp, "tcgen05.alloc")
        warp.clock.observe(event, generic=False)
        actor = self.actor(warp)
        actor.own, actor.when = event[0], event[1] << LINE_BITS | line_of(warp)
        target.shared.shadow.write(np.array([offset // 4]), 4, actor, "the result of tcgen05.alloc")
        warp.clock.tick()

    # -- tensor memory -----------------------------------------------------------------------------

    @staticmethod
    def require_tensor(warp: Warp, past: PastAccess, what: str) -> None:
        """Trap if a warp's access to tensor memory is not ordered behind another warp's."""
        component, time = past.event
        if max(int(warp.clock.row(kind)[component]) for kind in (KNOWN, OUT)) >= time:
            return
        span = past.access.span
        raise race(
            what,
            f"tensor memory columns {span.column}..{span.column_end - 1}",
            f"the {past.access.name} of warp {past.access.warp} (ptx:{past.access.line})",
        )


def _key(kind: str, lane: int | None) -> str:
    return kind if lane is None else f"{kind} {lane}"


def barrier_of(cta: Cta, offset: int) -> Mbarrier | None:
    """The live mbarrier at an offset."""
    return cta.state("mbarriers", dict).get(offset)


def line_of(warp: Warp) -> int:
    """The line it executes."""
    return warp.program.source[warp.split.pc].line


def describe(warp: Warp) -> str:
    """A warp as the other party of a race."""
    return f"warp {warp.index} of cta {warp.cta.index}"

"""Who runs next: warps and asynchronous operations, in an order fixed by the seed.

Every choice is legal; different seeds give different ones. Clusters start in a shuffled order, as
many as there is room for, at once or one by one; one that has not started may be cancelled by
`clusterlaunchcontrol.try_cancel`. Warps run for random quanta; operations complete late or early.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TypeVar

from ..errors import Deadlock, Trap
from ..interface import Cta, Launch, Split, Warp
from .delays import Delays
from .polling import Polling
from .spinning import QUIET_STEPS, Spinning
from .stuck import spins_at, stuck_report
from .stuck_words import first_waiter, headline, stuck_lines

QUANTUM = (16, 128)
"""Least and most instructions a warp runs before somebody else is picked."""
LIVELOCK_STEPS = 20_000_000
"""Instructions without any event, after which a spin loop counts as endless."""
ENGINE_BIAS = (0.05, 0.5, 0.95)
"""Chance that an operation that can complete does so before the next warp runs; one a seed."""
START_CHANCE = (0.01, 0.2, 1.0)
"""Chance that a cluster for which there is room starts before the next warp runs; one a seed."""

Taken = TypeVar("Taken")


class Scheduler:
    """Runs the launch to its end. steps: warp instructions so far; ctas: the resident ones.

    even: warps run at the same speed, as on GPUs, so that none lags that only waits, and clusters
    start, and are cancelled, in the grid's order; _ran: then the steps of each active warp, by its
    place; _had_run: of those that are parked.
    """

    def __init__(
        self,
        launch: Launch,
        clusters: list,
        resident: int,
        max_steps: int | None,
        even: bool = False,
    ):
        self._launch, self._rng, self._even = launch, launch.rng, even
        self._waiting = clusters[::-1] if even else clusters
        if not even:
            self._rng.shuffle(self._waiting)
        self._resident = max(resident, prod(launch.preferred))
        self._max_steps = max_steps
        self._bias = self._rng.choice(ENGINE_BIAS)
        self._start_chance = self._rng.choice(START_CHANCE)
        self._room = True
        self._active: list[Warp] = []
        self._ran: list[int] = []
        self._had_run: dict[Warp, int] = {}
        self._delays = None if even else Delays.of(launch)
        self._least = 0
        self._polling: Polling | None = None
        self._last_event = 0
        self._spinning: Spinning | None = None
        self._look_at = QUIET_STEPS
        self.ctas: list[Cta] = []
        self.steps = 0

    def run(self) -> None:
        """Run until every CTA has exited and every operation is done."""
        engines, chance = self._launch.engines, self._rng.random
        while self.ctas or engines.outstanding or self._waiting:
            if self._room and (not self.ctas or chance() < self._start_chance):
                self._start_cluster()
            elif engines.ready and (not self._active or chance() < self._bias):
                self._launch.current_warp = None
                self._happened()
                engines.run_one(self._rng)
            elif self._active:
                self._run_warp()
            elif self._room:
                self._start_cluster()
            elif self._delays and self._delays.held:
                self._begin([self._delays.resumed()])
            else:
                self._poll_again()

    def wake(self, warps: list[Warp]) -> None:
        """Let the parked ones of the warps look again."""
        if self._polling is not None:
            self._polling.end()
            self._polling = None
        self._happened()
        for warp in warps:
            if warp.parked:
                warp.parked = False
                self._begin([warp])

    def cta_exited(self, cta: Cta) -> None:
        """Every thread of `cta` has exited: a waiting cluster may take its place."""
        self.ctas.remove(cta)
        self._look_for_room()

    def take_unlaunched(self) -> tuple[int, int, int] | None:
        """Cancel the launch of a cluster that has not started; its %clusterid, None if none."""
        if not self._waiting:
            return None
        taken = self._waiting.pop()
        self._look_for_room()
        return taken.index

    def _look_for_room(self) -> None:
        free = self._resident - len(self.ctas)
        self._room = bool(self._waiting) and free >= prod(self._waiting[-1].shape)

    def _start_cluster(self) -> None:
        self._happened()
        for cta in self._launch.start_cluster(self._waiting.pop()):
            self.ctas.append(cta)
            self._begin(cta.warps)
        self._look_for_room()

    def _run_warp(self) -> None:
        pick = self._pick()
        warp = self._active[pick]
        self._launch.current_warp = warp
        ran = self._guarded_run(warp)
        self.steps += ran
        if self._even:
            self._ran[pick] += ran
        if not warp.can_run():
            self._end(pick)
        elif self._delays:
            self._delay(pick, self._delays)
        self._check_limits()
        if self.steps > self._look_at:
            self._look_for_spinning(warp)

    def _delay(self, pick: int, delays: Delays) -> None:
        """Hold the warp that has run, if it is to be, and let those go on whose time has come."""
        if delays.hold(self._active[pick], self.steps):
            _take(self._active, pick)
        if self.steps >= delays.resume_at:
            self._begin([delays.resumed()])

    def _pick(self) -> int:
        """The place of the next warp: where `even`, of one that has run the fewest steps."""
        pick = self._rng.randrange(len(self._active))
        if not self._even:
            return pick
        fewest = min(self._ran)
        self._least = max(self._least, fewest)
        return self._ran.index(fewest, pick if fewest in self._ran[pick:] else 0)

    def _begin(self, warps: Iterable[Warp]) -> None:
        """These warps can run, and have no more to catch up with than those that did."""
        for warp in warps:
            self._active.append(warp)
            if self._even:
                self._ran.append(max(self._had_run.pop(warp, 0), self._least))

    def _end(self, place: int) -> None:
        """The warp at this place is parked, or has exited."""
        warp = _take(self._active, place)
        warp.parked = bool(warp.splits)
        if self._even:
            ran = _take(self._ran, place)
            if warp.parked:
                self._had_run[warp] = ran

    def _happened(self) -> None:
        """Something that a thread may wait for."""
        self._last_event = self.steps
        self._look_at = self.steps + QUIET_STEPS
        if self._spinning is not None:
            self._spinning.end()
            self._spinning = None

    def _look_for_spinning(self, warp: Warp) -> None:
        """Raise Deadlock where all that runs repeats itself; a warp has run for a quantum."""
        if self._spinning is None:
            self._spinning = Spinning(self._launch)
        elif self._spinning.is_over(self._active):
            self._spinning.end()
            self._spinning, self._look_at = None, self.steps + max(QUIET_STEPS, self.steps // 2)
        elif (
            self._spinning.found(warp, self._active)
            and self._is_quiet()
            and not self._ask_pollers()
        ):
            raise self._spun(self._spinning)

    def _is_quiet(self) -> bool:
        """Whether nobody but the warps that run could do anything."""
        held = self._delays is not None and bool(self._delays.held)
        return bool(self._active or held) and not (self._launch.engines.ready or self._room or held)

    def _spun(self, spinning: Spinning) -> Trap:
        stuck = self._stuck(
            "every thread that runs repeats the same steps, and nothing is under way that could"
            " change what they ask for",
            spinning,
        )
        warp, split = self._all_splits()[first_waiter(stuck.report)]
        return stuck.locate(**warp.place_of(split, spins_at(spinning, warp, split)))

    def _guarded_run(self, warp: Warp) -> int:
        try:
            return warp.run(self._rng.randint(*QUANTUM))
        except Trap as trap:
            raise trap.locate(**warp.place()) from None

    def _check_limits(self) -> None:
        if self._max_steps is not None and self.steps > self._max_steps:
            words = "\n".join((*self._unstarted(), *stuck_lines(stuck_report(self._launch))))
            raise Trap(
                "step-limit",
                f"the launch ran more than max_steps={self._max_steps} instructions\n{words}",
            ).locate(kernel=self._launch.entry)
        if self.steps - self._last_event > LIVELOCK_STEPS:
            raise self._stuck(
                f"no thread has arrived, finished or been woken in the last"
                f" {LIVELOCK_STEPS} instructions: an endless loop"
            ).locate(kernel=self._launch.entry)

    # -- nobody can run ----------------------------------------------------------------------

    def _all_splits(self) -> list[tuple[Warp, Split]]:
        return [(warp, split) for cta in self.ctas for warp in cta.warps for split in warp.splits]

    def _poll_again(self) -> None:
        if not self._ask_pollers():
            raise self._deadlock()

    def _ask_pollers(self) -> bool:
        """Let those go on whose wait may end by its time limit; whether there are any, who have not
        done so often enough."""
        pollers = [(warp, split) for warp, split in self._all_splits() if split.polls]
        self._polling = self._polling or Polling(self._launch)
        if not pollers or not self._polling.again(dict.fromkeys(warp for warp, _ in pollers)):
            return False
        for warp, split in pollers:
            split.parked_at = None
            if warp.parked:
                warp.parked = False
                self._begin([warp])
        return True

    def _deadlock(self) -> Trap:
        for cta in self.ctas:
            for warp in cta.warps:
                if warp.splits and all(self._diverged(split) for split in warp.splits):
                    return self._convergence_trap(warp)
        stuck = self._stuck("every thread waits and nothing is under way that could wake one")
        warp, split = self._all_splits()[first_waiter(stuck.report)]
        return stuck.locate(**warp.place_of(split))

    def _stuck(self, verdict: str, spinning: Spinning | None = None) -> Deadlock:
        report = stuck_report(self._launch, spinning)
        first = f"{headline(report)}{verdict}"
        return Deadlock("\n".join((first, *self._unstarted(), *stuck_lines(report))), report)

    def _unstarted(self) -> list[str]:
        """A line about the clusters that wait for room, if there are any."""
        if not self._waiting:
            return []
        return [
            f"  {len(self._waiting)} clusters have not started: {self._resident} CTAs fit at once"
            f" (`resident`)"
        ]

    @staticmethod
    def _diverged(split: Split) -> bool:
        return split.reason is not None and split.reason.kind == "convergence"

    def _convergence_trap(self, warp: Warp) -> Trap:
        warp.split = min(warp.splits, key=lambda split: split.pc)
        trap = Trap(
            "convergence",
            f"{warp.split.reason.describe()}, but they never come here\n"
            + "\n".join(f"  {line}" for line in warp.describe()),
        )
        return trap.locate(**warp.place())


def _take(items: list[Taken], place: int) -> Taken:
    """Take one out; the last one comes to its place."""
    taken, items[place] = items[place], items[-1]
    items.pop()
    return taken

"""Who wrote and who read each byte last, and whether the next access is ordered behind them.

A mark is two numbers: `who` is the component (with the cluster's number for global memory),
negative if the access was strong (PTX ISA §8.7: two strong accesses never race), 0 for nobody;
`when` is ``time << 20 | PTX line``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ...errors import Trap
from ..proxy import CLOCKED, SharedProxy
from .actor import LINE_BITS, Actor
from .clock import ASYNC, ASYNC_GLOBAL, KNOWN, OVER, Domain
from .verdicts import Past, limit, split_when

Warn = Callable[[str, str], None]
Same = Callable[[], np.ndarray]
"""bool[bytes] of an access: which bytes keep their value."""
_CLUSTER_SHIFT = 16
_COMPONENT_MASK = (1 << _CLUSTER_SHIFT) - 1


@dataclass(slots=True)
class Marks:
    """The marks of one kind of access, for each byte of a memory."""

    who: np.ndarray
    when: np.ndarray

    @classmethod
    def of(cls, size: int, who: type) -> Marks:
        return cls(np.zeros(size, who), np.zeros(size, np.int64))

    def cells(self, size: int) -> Marks:
        """The same as rows of ``size`` bytes; a ragged end is left off."""
        whole = len(self.who) // size * size
        return Marks(self.who[:whole].reshape(-1, size), self.when[:whole].reshape(-1, size))


class Compared:
    """Which bytes a compare-and-swap wrote last.

    A loop around one starts from a plain read, which nothing orders: the swap finds out whether it
    was outdated. So the two do not race (CUDA's own atomicAdd of bf16 pairs is such a loop).
    """

    def __init__(self, size: int):
        self._size = size
        self._last: np.ndarray | None = None

    def excuses(self, index: np.ndarray, size: int, actor: Actor) -> bool:
        """Whether a read of the cells of ``size`` bytes needs no order behind their writes."""
        if self._last is None or actor.strong or actor.asynchronous:
            return False
        return bool(self._last.reshape(-1, size)[index].all())

    def written(self, index: np.ndarray, size: int, actor: Actor) -> None:
        """The cells have been written."""
        if self._last is None and actor.comparing:
            self._last = np.zeros(self._size, bool)
        if self._last is not None:
            self._last.reshape(-1, size)[index] = actor.comparing


class SharedShadow:
    """The marks of one CTA's shared memory of ``size`` bytes; offsets are those of its window.

    proxy: knows the writing threads that have not executed a proxy fence since: a fence by single
    lanes is found there. warn: told of a write that only others have fenced.
    """

    def __init__(self, size: int, domain: Domain, name: str, proxy: SharedProxy, warn: Warn):
        self._size = -size % 16 + size
        self._domain, self._name, self._proxy, self._warn = domain, name, proxy, warn
        self._tags = proxy.tags
        self._writes = Marks.of(self._size, np.int32)
        self._write_cells = {size: self._writes.cells(size) for size in (1, 2, 4, 8, 16)}
        self._lanes = np.zeros(self._size, np.uint8)
        self._compared = Compared(self._size)
        self._reads: dict[int, np.ndarray] = {}
        self._latest: dict[int, int] = {}

    @staticmethod
    def cells(offsets: np.ndarray, size: int) -> np.ndarray:
        """The numbers of the cells of ``size`` bytes at aligned offsets."""
        return offsets >> (size.bit_length() - 1)

    def read(self, index: np.ndarray, size: int, actor: Actor, what: str) -> None:
        """Somebody reads the cells of ``size`` bytes (a power of two) with these numbers."""
        if not self._compared.excuses(index, size, actor):
            self._check_writes(index, size, actor, what)
        reader = -actor.own if actor.strong else actor.own
        marks = self._reads.get(reader)
        if marks is None:
            marks = self._reads[reader] = np.zeros(self._size, np.int64)
        marks.reshape(-1, size)[index] = actor.when
        self._latest[reader] = actor.when

    def write(
        self, index: np.ndarray, size: int, actor: Actor, what: str, same: Same | None = None
    ) -> None:
        """Somebody writes them; ``same()`` tells which of the bytes keep their value."""
        self._check_writes(index, size, actor, what, same, overwrites=True)
        if not actor.comparing:
            self._check_reads(index, size, actor, what)
        self._compared.written(index, size, actor)
        cells = self._write_cells[size]
        cells.who[index] = -actor.own if actor.strong else actor.own
        cells.when[index] = actor.when
        lanes = 0 if actor.lanes is None else actor.lanes[:, None]
        self._lanes.reshape(-1, size)[index] = lanes

    def _check_writes(
        self,
        index: np.ndarray,
        size: int,
        actor: Actor,
        what: str,
        same: Same | None = None,
        *,
        overwrites: bool = False,
    ) -> None:
        cells = self._write_cells[size]
        who, when = cells.who[index], cells.when[index]
        if actor.lanes is not None and not actor.strong:
            self._check_lanes(index, size, actor, what, (who, when, same))
        bad = unordered(who, when, actor, actor.rows[ASYNC if actor.asynchronous else KNOWN])
        if bad is None:
            if actor.asynchronous and self._proxy.has_unfenced:
                self._warn_of_others(index, size, when, what)
            return
        unknown = unordered(who, when, actor, actor.rows[KNOWN])
        if actor.asynchronous and unknown is None:
            bad &= self._tags.reshape(-1, size)[index].reshape(-1) != 0
        if overwrites and unknown is not None:
            bad &= ~unknown | _flags(unordered(who, when, actor, actor.rows[OVER]), len(bad))
        bad = _harmful(bad, same)
        if bad is not None:
            at = _flat(index, size)[bad]
            mark = int(who.reshape(-1)[bad]), int(when.reshape(-1)[bad])
            self._refuse(int(at), "write", mark, actor, what)

    def _warn_of_others(self, index: np.ndarray, size: int, when: np.ndarray, what: str) -> None:
        """The ISA asks for a proxy fence on the way, practice for one by the writer itself."""
        waiting = self._tags.reshape(-1, size)[index].reshape(-1)
        threads = (waiting != 0) & (waiting != CLOCKED)
        if not threads.any():
            return
        first = int(threads.argmax())
        warp, lane = divmod(int(waiting[first]) - 1, 32)
        line = split_when(int(when.reshape(-1)[first]))[1]
        self._warn(
            "proxy-fence",
            f"{what} follows a write by warp {warp} lane {lane} (ptx:{line}) behind a"
            f" fence.proxy.async of other threads alone; the writer should execute it before it"
            f" synchronises",
        )

    def _check_lanes(
        self, index: np.ndarray, size: int, actor: Actor, what: str, past: tuple
    ) -> None:
        """Trap for a write of another lane of the warp since its lanes last came together."""
        who, when, same = past
        recent = (who == actor.own) & (when >= (actor.together + 1) << LINE_BITS)
        if not recent.any():
            return
        writers = self._lanes.reshape(-1, size)[index]
        recent &= (writers != 0) & (writers != actor.lanes[:, None])
        bad = _harmful(recent.reshape(-1), same)
        if bad is None:
            return
        at, lane = int(_flat(index, size)[bad]), int(writers.reshape(-1)[bad]) - 1
        name = self._domain.name(actor.own).replace(" of cta", f" lane {lane} of cta")
        other = f"the write by {name} (ptx:{split_when(int(when.reshape(-1)[bad]))[1]})"
        raise Trap(
            "race",
            f"{what} of shared offset 0x{at:x} is not ordered behind {other}: lanes of a warp need"
            f" bar.warp.sync between them",
        )

    def _check_reads(self, index: np.ndarray, size: int, actor: Actor, what: str) -> None:
        for reader, latest in self._latest.items():
            unknown = limit(actor.rows[OVER], abs(reader))
            if latest < unknown or (actor.strong and reader < 0):
                continue
            when = self._reads[reader].reshape(-1, size)[index].reshape(-1)
            if when.max() >= unknown:
                bad = int(when.argmax())
                at = int(_flat(index, size)[bad])
                self._refuse(at, "read", (reader, int(when[bad])), actor, what)

    def _refuse(
        self, at: int, past: str, mark: tuple[int, int], actor: Actor, what: str
    ) -> NoReturn:
        component, (_, line) = abs(mark[0]), split_when(mark[1])
        other = f"the {past} by {self._domain.name(component)} (ptx:{line})"
        place = f"shared offset 0x{at:x} of {self._name}"
        past_event = Past(actor, component, mark[1])
        if past_event.is_known(KNOWN) and self._tags[at] not in (0, CLOCKED):
            other = other.replace(" of cta", f" lane {(int(self._tags[at]) - 1) % 32} of cta")
        raise past_event.refusal(what, place, other, ASYNC)


def _flat(index: np.ndarray, size: int) -> np.ndarray:
    """The byte offsets of cells, in order."""
    return (np.asarray(index).reshape(-1, 1) * size + np.arange(size)).reshape(-1)


class GlobalShadow:
    """The marks of one array in global memory that the kernel may write; bytes from its start.

    Of the reads the last ones of two agents are kept for each byte.
    """

    def __init__(self, size: int, domains: list[Domain], name: str):
        self._size, self._domains, self._name = size, domains, name
        self._writes: Marks | None = None
        self._reads: list[Marks] = []
        self._compared = Compared(size)

    @staticmethod
    def cells(offsets: np.ndarray, size: int) -> np.ndarray:
        """The bytes of accesses of ``size`` bytes."""
        return (offsets[:, None] + np.arange(size)).reshape(-1)

    def read(self, index: np.ndarray, size: int, actor: Actor, what: str) -> None:
        """Somebody reads these bytes, of accesses of ``size``."""
        if self._writes is not None and not self._compared.excuses(index, 1, actor):
            self._check(self._writes, index, actor, _visible(actor), ("write", what, None))
        if not self._reads:
            self._reads = [Marks.of(self._size, np.int64) for _ in range(2)]
        last, before = self._reads
        own = self._sign(actor)
        moved = index[(last.who[index] != own) & (last.who[index] != 0)]
        before.who[moved], before.when[moved] = last.who[moved], last.when[moved]
        last.who[index], last.when[index] = own, actor.when

    def write(
        self, index: np.ndarray, size: int, actor: Actor, what: str, same: Same | None = None
    ) -> None:
        """Somebody writes them; ``same()`` tells which of the bytes keep their value."""
        if self._writes is None:
            self._writes = Marks.of(self._size, np.int64)
        self._check(self._writes, index, actor, _visible(actor), ("write", what, same))
        for marks in () if actor.comparing else self._reads:
            self._check(marks, index, actor, OVER, ("read", what, same))
        self._compared.written(index, 1, actor)
        self._writes.who[index], self._writes.when[index] = self._sign(actor), actor.when

    @staticmethod
    def _sign(actor: Actor) -> int:
        who = actor.domain.number << _CLUSTER_SHIFT | actor.own
        return -who if actor.strong else who

    def _check(
        self, marks: Marks, index: np.ndarray, actor: Actor, kind: int, about: tuple
    ) -> None:
        who, when = marks.who[index], marks.when[index]
        if not who.any():
            return
        past, what, same = about
        clusters = np.abs(who) >> _CLUSTER_SHIFT
        for number in np.unique(clusters[who != 0]).tolist():
            component = np.sign(who) * (np.abs(who) & _COMPONENT_MASK)
            here = np.where(clusters == number, component, 0)
            bad = _harmful(unordered(here, when, actor, actor.knows(kind, number)), same)
            if bad is not None:
                mark = int(who.reshape(-1)[bad]), int(when.reshape(-1)[bad])
                self._refuse(int(index.reshape(-1)[bad]), past, mark, actor, what)

    def _refuse(
        self, at: int, past: str, mark: tuple[int, int], actor: Actor, what: str
    ) -> NoReturn:
        who, (_, line) = abs(mark[0]), split_when(mark[1])
        cluster, component = who >> _CLUSTER_SHIFT, who & _COMPONENT_MASK
        other = f"the {past} by {self._domains[cluster].name(component)} (ptx:{line})"
        place = f"byte {at} of {self._name}"
        raise Past(actor, component, mark[1], cluster).refusal(what, place, other, ASYNC_GLOBAL)


def _visible(actor: Actor) -> int:
    """The row that says which writes to global memory it may read or replace."""
    return ASYNC_GLOBAL if actor.asynchronous else KNOWN


def _harmful(bad: np.ndarray | None, same: Same | None) -> int | None:
    """The first of the flagged bytes that changes its value, None if there is none.

    Several threads that write the value that is there already do no harm.
    """
    if bad is None:
        return None
    if same is not None:
        bad = bad & ~same()
    return int(bad.argmax()) if bad.any() else None


def _flags(bad: np.ndarray | None, count: int) -> np.ndarray:
    return np.zeros(count, bool) if bad is None else bad


def unordered(
    who: np.ndarray, when: np.ndarray, actor: Actor, row: np.ndarray
) -> np.ndarray | None:
    """bool[bytes]: marks that the actor is not ordered behind; None if there is none."""
    first = int(who.flat[0])
    if (who == first).all():
        if first == 0 or (actor.strong and first < 0) or int(when.max()) < limit(row, abs(first)):
            return None
        return when.reshape(-1) >= limit(row, abs(first))
    components = np.abs(who)
    if len(row) <= int(components.max()):
        row = np.pad(row, (0, int(components.max()) + 1 - len(row)))
    bad = when >= (row[components] + 1) << LINE_BITS
    bad &= (who > 0) if actor.strong else (who != 0)
    return bad.reshape(-1) if bad.any() else None

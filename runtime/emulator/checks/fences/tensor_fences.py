"""Which tensor memory accesses of one warp another warp may rely on.

Between threads, tcgen05 accesses are ordered by a fence on both sides of the synchronisation:
``fence::before_thread_sync`` behind the earlier access (a commit implies it), and
``fence::after_thread_sync`` before the later one (PTX ISA §9.7.16.6.4). For accesses that have been
waited for, release and acquire do as well: "the standard memory consistency model synchronization
mechanisms also apply" (§9.7.16.6.3). Relying on them is a warning, since it is seldom meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import Trap
from ...interface import Warp
from ...tensor.spans import Access, Span

_NEVER, _BEFORE = -1, 0


@dataclass
class PastAccess:
    """A completed access: when its warp published it (the time of its before-fence or commit), or
    released it by the standard mechanisms. event: by what the race checks know it; issued: the
    same of its issue, where that counts; who: its warp."""

    access: Access
    published: int = _NEVER
    released: int = _NEVER
    event: tuple[int, int] | None = None
    issued: tuple[int, int] | None = None
    who: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.who = self.access.who


@dataclass
class Fences:
    """What has completed in the tensor memory of one CTA, by a clock that every event advances.

    Warps are named by (cluster rank, index): in a pair, one CTA's warp works on both memories.
    warn: told (category, message) of accesses that only the standard mechanisms order. judge: asked
    (warp, past, what) whether an access is ordered behind an earlier one, where clocks tell.
    """

    warn: Callable[[str, str], None]
    judge: Callable[[Warp, PastAccess, str], None] | None = None
    clock: int = 0
    past: list[PastAccess] = field(default_factory=list)
    after: dict[tuple[int, int], int] = field(default_factory=dict)
    acquires: dict[tuple[int, int], int] = field(default_factory=dict)

    def completed(
        self,
        access: Access,
        *,
        published: bool,
        event: tuple[int, int] | None,
        issued: tuple[int, int] | None = None,
    ) -> None:
        """An access is complete; ``published`` if its completion is signalled by a commit;
        issued: when it was issued, if that is what others may be ordered behind."""
        self.clock += 1
        now, who = self.clock if published else _NEVER, access.who
        released = now if issued is None else _BEFORE
        for past in self.past:
            if past.access.name == access.name and past.who == who:
                mine = past.access.span
                joined = mine if mine == access.span else _joined(mine, access.span)
                same = past.published == past.released == now
                if joined and (same or joined == access.span):
                    same_span = joined == access.span
                    past.access = access if same_span else access._replace(span=joined)
                    past.published = now
                    past.released = released
                    past.event, past.issued = event, issued
                    return
        self.past.append(PastAccess(access, now, released, event, issued))

    def before(self, warp: tuple[int, int]) -> None:
        """``fence::before_thread_sync`` by a warp."""
        self.clock += 1
        for past in self.past:
            if past.who == warp and past.published == _NEVER:
                past.published = self.clock
        self.released(warp)

    def released(self, warp: tuple[int, int]) -> None:
        """A release by a warp: a barrier or an arrival that is not relaxed, a memory fence."""
        self.clock += 1
        for past in self.past:
            if past.who == warp and past.released == _NEVER:
                past.released = self.clock

    def synchronised(self, warp: tuple[int, int]) -> None:
        """``fence::after_thread_sync`` by a warp."""
        self.clock += 1
        self.after[warp] = self.acquires[warp] = self.clock

    def acquired(self, warp: tuple[int, int]) -> None:
        """An acquire by a warp: a barrier or a wait that is not relaxed, a memory fence."""
        self.clock += 1
        self.acquires[warp] = self.clock

    def require(
        self, span: Span, warp: Warp, what: str, *, reads: bool, fences: bool = True
    ) -> None:
        """Trap if an earlier access of another warp to ``span`` is not ordered before this one.

        fences: whether the order must be one that tensor memory accesses may rely on.
        """
        who = (warp.cta.rank, warp.index)
        for past in self.past:
            access = past.access
            if past.who == who or (reads and access.reads) or not access.span.meets(span):
                continue
            if fences:
                self._require_fences(past, who, what, span)
            if self.judge is not None and past.event is not None:
                self.judge(warp, past, what)

    def forget(self, span: Span) -> None:
        """The columns are free: who gets them next finds nothing there."""
        self.past = [past for past in self.past if not past.access.span.meets(span)]

    def _require_fences(
        self, past: PastAccess, who: tuple[int, int], what: str, span: Span
    ) -> None:
        side = self._unfenced(past, who)
        if side is None:
            return
        if past.released == _NEVER or self.acquires.get(who, _BEFORE) < past.released:
            raise _missing(side, past.access, what, span)
        self.warn(
            "unfenced",
            f"{what} follows the {past.access.name} of another warp (ptx:{past.access.line})"
            f" without tcgen05.fence::{side}_thread_sync, relying on release and acquire",
        )

    def _unfenced(self, past: PastAccess, warp: tuple[int, int]) -> str | None:
        if past.published == _NEVER:
            return "before"
        return "after" if self.after.get(warp, _NEVER) < past.published else None


def _joined(one: Span, other: Span) -> Span | None:
    """The union of two spans of the same lanes that meet or touch, else None."""
    if (one.lane, one.lane_end, one.half) != (other.lane, other.lane_end, other.half):
        return None
    if one.column > other.column_end or other.column > one.column_end:
        return None
    low, high = min(one.column, other.column), max(one.column_end, other.column_end)
    return one._replace(column=low, column_end=high)


def _missing(side: str, access: Access, what: str, span: Span) -> Trap:
    where = "behind it" if side == "before" else f"between the synchronisation and this {what}"
    return Trap(
        "missing-fence",
        f"{what} of tensor memory columns {span.column}..{span.column_end - 1} follows the"
        f" {access.name} of warp {access.warp} (ptx:{access.line}) without"
        f" tcgen05.fence::{side}_thread_sync {where}",
    )

"""Which tensor memory accesses of one warp another warp may rely on.

Between threads, tcgen05 accesses are ordered by a fence on both sides of the synchronisation:
``fence::before_thread_sync`` behind the earlier access (a commit implies it), and
``fence::after_thread_sync`` before the later one (PTX ISA §9.7.16.6.4). For accesses that have been
waited for, release and acquire do as well: "the standard memory consistency model synchronization
mechanisms also apply" (§9.7.16.6.3). Relying on them is a warning, since it is seldom meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .errors import Trap

if TYPE_CHECKING:
    from .tensor_engine import Access, Span

_NEVER = -1


@dataclass
class _Past:
    """A completed access: when its warp published it (the time of its before-fence or commit), or
    released it by the standard mechanisms."""

    access: Access
    published: int = _NEVER
    released: int = _NEVER


@dataclass
class Fences:
    """What has completed in the tensor memory of one CTA, by a clock that every event advances.

    Warps are named by (cluster rank, index): in a pair, one CTA's warp works on both memories.
    warn: told (category, message) of accesses that only the standard mechanisms order.
    """

    warn: Callable[[str, str], None]
    clock: int = 0
    past: list[_Past] = field(default_factory=list)
    after: dict[tuple[int, int], int] = field(default_factory=dict)
    acquires: dict[tuple[int, int], int] = field(default_factory=dict)

    def completed(self, access: Access, *, published: bool) -> None:
        """An access is complete; ``published`` if its completion is signalled by a commit."""
        self.clock += 1
        now = self.clock if published else _NEVER
        for past in self.past:
            if past.access.name == access.name and past.access.who == access.who:
                joined = _joined(past.access.span, access.span)
                if joined and (past.published == now or joined == access.span):
                    past.access = replace(access, span=joined)
                    past.published = past.released = now
                    return
        self.past.append(_Past(access, now, now))

    def before(self, warp: tuple[int, int]) -> None:
        """``fence::before_thread_sync`` by a warp."""
        self.clock += 1
        for past in self.past:
            if past.access.who == warp and past.published == _NEVER:
                past.published = self.clock
        self.released(warp)

    def released(self, warp: tuple[int, int]) -> None:
        """A release by a warp: a barrier or an arrival that is not relaxed, a memory fence."""
        self.clock += 1
        for past in self.past:
            if past.access.who == warp and past.released == _NEVER:
                past.released = self.clock

    def synchronised(self, warp: tuple[int, int]) -> None:
        """``fence::after_thread_sync`` by a warp."""
        self.clock += 1
        self.after[warp] = self.acquires[warp] = self.clock

    def acquired(self, warp: tuple[int, int]) -> None:
        """An acquire by a warp: a barrier or a wait that is not relaxed, a memory fence."""
        self.clock += 1
        self.acquires[warp] = self.clock

    def require(self, span: Span, warp: tuple[int, int], what: str, *, reads: bool) -> None:
        """Trap if an earlier access of another warp to ``span`` is not ordered before this one."""
        for past in self.past:
            access = past.access
            if access.who == warp or (reads and access.reads) or not access.span.meets(span):
                continue
            side = self._unfenced(past, warp)
            if side is None:
                continue
            if past.released == _NEVER or self.acquires.get(warp, _NEVER) < past.released:
                raise _missing(side, access, what, span)
            self.warn(
                "unfenced",
                f"{what} follows the {access.name} of another warp (ptx:{access.line}) without"
                f" tcgen05.fence::{side}_thread_sync, relying on release and acquire",
            )

    def _unfenced(self, past: _Past, warp: tuple[int, int]) -> str | None:
        if past.published == _NEVER:
            return "before"
        return "after" if self.after.get(warp, _NEVER) < past.published else None


def _joined(one: Span, other: Span) -> Span | None:
    """The union of two spans of the same lanes that meet or touch, else None."""
    if (one.lane, one.lane_end) != (other.lane, other.lane_end):
        return None
    if one.column > other.column_end or other.column > one.column_end:
        return None
    low, high = min(one.column, other.column), max(one.column_end, other.column_end)
    return replace(one, column=low, column_end=high)


def _missing(side: str, access: Access, what: str, span: Span) -> Trap:
    where = "behind it" if side == "before" else f"between the synchronisation and this {what}"
    return Trap(
        "missing-fence",
        f"{what} of tensor memory columns {span.column}..{span.column_end - 1} follows the"
        f" {access.name} of warp {access.warp} (ptx:{access.line}) without"
        f" tcgen05.fence::{side}_thread_sync {where}",
    )

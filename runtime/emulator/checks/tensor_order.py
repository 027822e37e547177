"""What must be waited for, and fenced, between accesses to tensor memory.

Accesses that the ISA leaves unordered and that meet on the same columns are refused when the
second one is issued (PTX ISA, tcgen05 "Memory Consistency Model": pipelined instructions and
tcgen05.wait), so that a missing wait is an error in every schedule.
"""

from __future__ import annotations

from contextlib import nullcontext

from ..errors import Trap
from ..interface import Cta, EngineOp, Launch, Warp
from ..machine.events import Listener
from ..tensor.spans import Access, Claim, Span
from .fences.shared_rules import SharedRules
from .fences.tensor_fences import Fences
from .races import Races
from .races.clock import Event

_CURES = {
    "tcgen05.ld": "tcgen05.wait::ld first",
    "tcgen05.st": "tcgen05.wait::st first",
    "tcgen05.mma": "tcgen05.commit it and wait for its mbarrier first",
    "tcgen05.cp": "tcgen05.commit it and wait for its mbarrier first",
    "tcgen05.shift": "tcgen05.commit it and wait for its mbarrier first",
}
_HANDED_TO = ("tcgen05.ld", "tcgen05.dealloc")
"""What CUTLASS's attention lets follow a tcgen05.st of another warp that has not waited for it."""
_REPLACED_A = (
    "tcgen05.mma replaces what an earlier tcgen05.mma of the thread may still read as operand A;"
    " PTX ISA §9.7.16.6.2 lists no order of the two, issue order is assumed"
)


class _Columns:
    """The tensor memory of one CTA: accesses under way, and those that fences publish."""

    def __init__(self, fences: Fences):
        self.fences = fences
        self.accesses: list[Access] = []

    def take(self, op: EngineOp) -> Access:
        """The first access of an operation, which is under way no longer."""
        at = next(n for n, access in enumerate(self.accesses) if access.op is op)
        return self.accesses.pop(at)


class TensorOrder(Listener):
    """races: asked for the order that clocks know, where they are on; rules: say what is only told
    of: what a tcgen05.st stored counts from its issue on where libraries hand it on unwaited."""

    def __init__(self, launch: Launch, races: Races | None, rules: SharedRules):
        self._launch, self._races, self._rules = launch, races, rules
        self._stores: dict[Access, Event] = {}
        self._of: dict[Cta, _Columns] = {}
        self._accessed: dict[EngineOp, list[Cta]] = {}

    def _columns(self, cta: Cta) -> _Columns:
        if cta not in self._of:
            judge = self._races and self._races.require_tensor
            self._of[cta] = _Columns(Fences(self._launch.warn, judge))
        return self._of[cta]

    def cta_exited(self, cta: Cta) -> None:
        self._of.pop(cta, None)

    def columns_claimed(self, cta: Cta, claim: Claim) -> None:
        """Trap if an access of ``claim.against`` meets it and may still be under way."""
        shape = claim.shape
        for access in self._columns(cta).accesses:
            if shape is not None and access.shape == shape:
                continue  # pipelined
            if access.name not in claim.against or (claim.reads and access.reads):
                continue
            if access.name == "tcgen05.mma" and access.who == claim.behind_products_of:
                continue
            if not access.span.meets(claim.span):
                continue
            if access.reads and access.who == claim.behind_reads_of:
                self._launch.warn("unlisted-order", _REPLACED_A)
                continue
            handed = claim.what in _HANDED_TO and self._is_handed_over(access)
            with self._rules.as_warning("unwaited-store") if handed else nullcontext():
                raise _unordered(access, claim.span, claim.what)

    def _is_handed_over(self, access: Access) -> bool:
        """Whether the warp that runs is ordered behind the issue of a tcgen05.st."""
        warp, event = self._launch.current_warp, self._stores.get(access)
        if self._races is None or warp is None or event is None:
            return False
        return access.who != (warp.cta.rank, warp.index) and self._races.knows(warp, event)

    def columns_used(self, cta: Cta, warp: Warp, claim: Claim, fences: bool) -> None:
        how = dict(reads=claim.reads, fences=fences)
        self._columns(cta).fences.require(claim.span, warp, claim.what, **how)

    def columns_issued(self, cta: Cta, access: Access) -> None:
        self._columns(cta).accesses.append(access)
        warp = self._launch.current_warp
        if access.name == "tcgen05.st" and self._races is not None and warp is not None:
            self._stores[access] = self._races.now(warp)
        if access.op is not None:
            self._accessed.setdefault(access.op, []).append(cta)

    def columns_waited(self, warp: Warp, name: str, lines: frozenset[int] | None) -> None:
        event = self._races and self._races.now(warp)
        columns = self._columns(warp.cta)
        done = [
            access
            for access in columns.accesses
            if access.name == name
            and access.warp == warp.index
            and (lines is None or access.line in lines)
        ]
        stored = {access: self._stores.pop(access, None) for access in dict.fromkeys(done)}
        for access in done:
            issued = stored[access] if self._rules.lenient else None
            columns.fences.completed(access, published=False, event=event, issued=issued)
        columns.accesses = [access for access in columns.accesses if access not in done]

    def completed(self, op: EngineOp) -> None:
        """The accesses of an operation are complete; a commit signals them."""
        event = op.marks and op.marks.event
        for cta in self._accessed.pop(op, ()):
            columns = self._columns(cta)
            access = columns.take(op)
            columns.fences.completed(access, published=True, event=event)

    def columns_freed(self, cta: Cta, span: Span) -> None:
        self._columns(cta).fences.forget(span)

    # -- between warps -----------------------------------------------------------------------

    def _reached(self, warp: Warp) -> list[Fences]:
        """The fences of the tensor memories that a warp works on: its own CTA's and the peer's."""
        first = warp.cta.rank & ~1
        members = warp.cta.cluster.ctas[first : first + 2]
        return [self._of[member].fences for member in members if member in self._of]

    def tensor_fenced(self, warp: Warp, before: bool) -> None:
        for fences in self._reached(warp):
            (fences.before if before else fences.synchronised)(_name(warp))

    def released(self, warp: Warp) -> None:
        """What it has waited for may be relied on (PTX ISA §8.8)."""
        for fences in self._reached(warp):
            fences.released(_name(warp))

    def acquired(self, warp: Warp) -> None:
        """It may rely on what others have released."""
        for fences in self._reached(warp):
            fences.acquired(_name(warp))


def _name(warp: Warp) -> tuple[int, int]:
    return warp.cta.rank, warp.index


def _unordered(access: Access, span: Span, what: str) -> Trap:
    return Trap(
        "missing-wait",
        f"{what} of tensor memory columns {span.column}..{span.column_end - 1} is not ordered "
        f"behind the {access.name} of warp {access.warp} (ptx:{access.line}) on columns "
        f"{access.span.column}..{access.span.column_end - 1}; {_CURES[access.name]}",
    )

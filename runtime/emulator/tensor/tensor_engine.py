"""The tensor core of a CTA (pair): its tensor memory, what is in flight, what must be waited for.

Accesses that the ISA leaves unordered and that meet on the same columns are refused when the
second one is issued (PTX ISA, tcgen05 "Memory Consistency Model": pipelined instructions and
tcgen05.wait), so that a missing wait is an error in every schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from ..errors import Trap
from ..interface import Cta, EngineOp, Warp
from .spans import Access, Span
from .tensor_fences import Fences
from .tensor_memory import COLUMNS, LANES, TensorMemory

_KEY = "tensor engine"
_CURES = {
    "tcgen05.ld": "tcgen05.wait::ld first",
    "tcgen05.st": "tcgen05.wait::st first",
    "tcgen05.mma": "tcgen05.commit it and wait for its mbarrier first",
    "tcgen05.cp": "tcgen05.commit it and wait for its mbarrier first",
}


class TensorEngine:
    """State of one CTA.

    ``last`` is the newest mma of the CTA (pair), kept on the even CTA; ``issued`` the operations
    of each thread (warp, lane) that a commit tracks; ``accesses`` what is not known to be done;
    ``requests`` the allocation that waits for ("columns") or got ("granted") the pair's agreement.
    """

    def __init__(self, poison: np.ndarray, rng: random.Random, warn: Callable[[str, str], None]):
        self.memory = TensorMemory(poison, rng.choice)
        self.last: EngineOp | None = None
        self.copies: list[EngineOp] = []
        self.issued: dict[tuple[int, int], list[EngineOp]] = {}
        self.accesses: list[Access] = []
        self.fences = Fences(warn)
        self.group: int | None = None
        self.requests: dict[str, int] = {}

    def use_group(self, group: int) -> None:
        """Every tcgen05 instruction of a kernel must have the same .cta_group."""
        if self.group not in (None, group):
            raise Trap(
                "tmem",
                f"all tcgen05 instructions of a kernel must use the same .cta_group, got {group} "
                f"after {self.group}",
            )
        self.group = group

    def track(self, access: Access) -> None:
        """Remember an access until it is waited for (ld, st) or its operation has run."""
        self.accesses.append(access)

    def outstanding(self, warp: int, lane: int) -> tuple[EngineOp, ...]:
        """Operations of a thread that are not done."""
        if (warp, lane) not in self.issued:
            return ()
        ops = [op for op in self.issued[warp, lane] if not op.done]
        self.issued[warp, lane] = ops
        return tuple(ops)

    def has_issued(self, warp: int, lane: int) -> bool:
        """Whether the thread has ever issued an operation that a commit tracks."""
        return (warp, lane) in self.issued

    def note_issue(self, warp: int, lane: int, op: EngineOp) -> None:
        """A commit of this thread tracks ``op``."""
        self.issued.setdefault((warp, lane), []).append(op)

    def waited(self, warp: Warp, name: str, lines: frozenset[int] | None = None) -> None:
        """tcgen05.wait of a warp: its accesses called ``name`` are complete.

        lines: only those of these PTX lines are, whose results the warp uses.
        """
        event = None if warp.launch.races is None else (warp.clock.own, warp.clock.time)
        done = [
            access
            for access in self.accesses
            if access.name == name
            and access.warp == warp.index
            and (lines is None or access.line in lines)
        ]
        for access in done:
            self.fences.completed(access, published=False, event=event)
        self.accesses = [access for access in self.accesses if access not in done]

    def finished(self, op: EngineOp) -> None:
        """An operation has run: its accesses are complete, a commit signals them."""
        for access in self.accesses:
            if access.op is op:
                self.fences.completed(access, published=True, event=op.event)
        self.accesses = [a for a in self.accesses if a.op is not op]

    def products_before(self, span: Span, who: tuple[int, int]) -> tuple[EngineOp, ...]:
        """Products of a warp under way on ``span``, which its next tcgen05.cp is executed behind.

        PTX ISA §9.7.16.6.2 lists cp -> mma and not mma -> cp. One pipe executes both in the order
        of issue, and block-scaled kernels of every compiler replace scale factors relying on it.
        """
        found = [a for a in self.accesses if a.name == "tcgen05.mma" and a.who == who]
        return tuple(a.op for a in found if a.op and not a.op.done and a.span.meets(span))

    def require_ordered(
        self,
        span: Span,
        what: str,
        against: tuple[str, ...],
        *,
        shape: tuple[int, int, int] | None = None,
        reads: bool = False,
        behind_products_of: tuple[int, int] | None = None,
    ) -> None:
        """Trap if an access named in ``against`` overlaps ``span`` and may still be under way.

        Two reads never conflict. An mma on the same accumulator and ``shape`` is pipelined behind
        the earlier one; ``behind_products_of`` a warp, see `products_before`.
        """
        if not self.accesses:
            return
        self.accesses = [a for a in self.accesses if a.op is None or not a.op.done]
        for access in self.accesses:
            if access.name not in against or (reads and access.reads):
                continue
            if access.name == "tcgen05.mma" and access.who == behind_products_of:
                continue
            pipelined = shape is not None and access.shape == shape
            if not pipelined and access.span.meets(span):
                raise _unordered(access, span, what)


def _unordered(access: Access, span: Span, what: str) -> Trap:
    return Trap(
        "missing-wait",
        f"{what} of tensor memory columns {span.column}..{span.column_end - 1} is not ordered "
        f"behind the {access.name} of warp {access.warp} (ptx:{access.line}) on columns "
        f"{access.span.column}..{access.span.column_end - 1}; {_CURES[access.name]}",
    )


def tensor_engine(cta: Cta) -> TensorEngine:
    """The tensor engine of a CTA; made at first use."""
    return cta.state(_KEY, lambda: _make(cta))


def reachable_fences(cta: Cta) -> list[Fences]:
    """Those of the tensor memories that a warp of this CTA works on: its own and its peer's."""
    first = cta.rank & ~1
    engines = [member.known(_KEY) for member in cta.cluster.ctas[first : first + 2]]
    return [engine.fences for engine in engines if engine is not None]


def released(warp: Warp) -> None:
    """A warp executes a release (PTX ISA §8.8): what it has waited for may be relied on."""
    for fences in reachable_fences(warp.cta):
        fences.released((warp.cta.rank, warp.index))


def acquired(warp: Warp) -> None:
    """A warp executes an acquire: it may rely on what others have released."""
    for fences in reachable_fences(warp.cta):
        fences.acquired((warp.cta.rank, warp.index))


def _make(cta: Cta) -> TensorEngine:
    launch = cta.launch
    raw = np.frombuffer(launch.poison_bytes(4 * LANES * COLUMNS), np.uint32)
    words = raw.reshape(LANES, COLUMNS)
    engine = launch.make_tensor_engine(words, launch.rng, launch.warn)
    cta.at_exit(lambda: _check_freed(engine))
    return engine


def _check_freed(engine: TensorEngine) -> None:
    for start, size in engine.memory.allocations.items():
        raise Trap(
            "tmem",
            f"the CTA exits with tensor memory columns {start}..{start + size - 1} allocated; "
            f"tcgen05.dealloc them first",
        )


def pair_of(cta: Cta, group: int) -> tuple[Cta, ...]:
    """The CTAs a tcgen05 instruction of this .cta_group works on, the even rank first."""
    if group == 1:
        return (cta,)
    ranks = len(cta.cluster.ctas)
    if ranks % 2:
        raise Trap("tmem", f"cta_group::2 needs a cluster of an even number of CTAs, got {ranks}")
    even = cta.rank & ~1
    pair = (cta.cluster.cta(even), cta.cluster.cta(even + 1))
    for member in pair:
        if member.exited:
            raise Trap("exited-cta", f"the CTA of cluster rank {member.rank}, the other one of "
                                     f"the pair, has exited")  # fmt: skip
    return pair

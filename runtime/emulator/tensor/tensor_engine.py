"""The tensor core of a CTA (pair): its tensor memory, and what is in flight."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..errors import Trap
from ..interface import Cta, EngineOp, Launch
from .spans import Access, Span
from .tensor_memory import COLUMNS, LANES, TensorMemory

_PRODUCTS = 64
"""Products that are noted before those that are done are looked for."""


class TensorEngine:
    """State of one CTA.

    ``last`` is the newest mma of the CTA (pair), kept on the even CTA, ``series`` what the next one
    may join (`tcgen05_series.Series`), or None; ``copies`` what was issued since and the next mma
    comes behind, ``shifts`` the tcgen05.shift among it and before; ``issued`` the operations
    of each thread (warp, lane) that a commit tracks; ``products`` what mmas under way access;
    ``requests`` the allocation that waits for ("columns") or got ("granted") the pair's agreement;
    ``kept`` what collector buffers hold (`tcgen05_collector.Held`), by name.
    """

    def __init__(self, memory: TensorMemory):
        self.memory = memory
        self.last: EngineOp | None = None
        self.series: Any = None
        self.copies: list[EngineOp] = []
        self.shifts: list[EngineOp] = []
        self.issued: dict[tuple[int, int], list[EngineOp]] = {}
        self.products: list[Access] = []
        self._most = _PRODUCTS
        self.requests: dict[str, int] = {}
        self.kept: dict[str, Any] = {}

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

    def products_before(self, span: Span, who: tuple[int, int]) -> tuple[EngineOp, ...]:
        """Products of a warp under way on ``span``, which its next tcgen05.cp is executed behind.

        PTX ISA §9.7.16.6.2 lists cp -> mma and not mma -> cp. One pipe executes both in the order
        of issue, and block-scaled kernels of every compiler replace scale factors relying on it.
        """
        self._forget_done()
        mine = (a.op for a in self.products if a.who == who and a.span.meets(span))
        return tuple(op for op in mine if op is not None)

    def note_product(self, access: Access) -> None:
        """A product will access tensor memory."""
        if len(self.products) >= self._most:
            self._forget_done()
            self._most = 2 * len(self.products) + _PRODUCTS
        self.products.append(access)

    def _forget_done(self) -> None:
        self.products = [each for each in self.products if each.op is not None and not each.op.done]


def tensor_engine(cta: Cta) -> TensorEngine:
    """The tensor engine of a CTA; made at first use."""
    if cta.tensor is None:
        cta.tensor = _make(cta)
    return cta.tensor


def track(cta: Cta, access: Access) -> None:
    """An access has been issued."""
    if access.name == "tcgen05.mma":
        tensor_engine(cta).note_product(access)
    cta.launch.events.columns_issued(cta, access)


def _make(cta: Cta) -> TensorEngine:
    launch = cta.launch
    raw = np.frombuffer(launch.poison_bytes(4 * LANES * COLUMNS), np.uint32)
    words = raw.reshape(LANES, COLUMNS)
    engine = TensorEngine(TensorMemory(words, partial(_place, launch), launch.tracks_writing))
    cta.at_exit(lambda: _check_freed(engine))
    return engine


def _place(launch: Launch, starts: list[int]) -> int:
    """Where an allocation lies. PTX leaves it open; with an even seed it is the lowest place, as on
    GPUs, by which DeepGEMM's kernels for Blackwell go."""
    drawn = launch.rng.choice(starts)
    return drawn if launch.seed % 2 else min(starts)


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

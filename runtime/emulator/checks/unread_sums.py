"""Sums of products in tensor memory that are replaced unread, or added to when they have been read.

`enable-input-d` is false for the first step along K and true for the others (PTX ISA §9.7.16.10.9).
A product that does not add to the step before it breaks no rule, nor does one that adds to the sums
of another tile: a result is wrong. It shows where sums are replaced that nothing has read, and
where a product adds to sums that tcgen05.ld has read and nobody has stored anew.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ..interface import Cta, Launch, Warp
from ..machine.events import Listener
from ..tensor.spans import Access, Claim, Span
from .partly_read_sums import PartlyReadSums, mark, read_of


@dataclass
class _Sums:
    """PTX lines of the newest product, and of a tcgen05.ld that has read its sums; read:
    bool[lanes, columns]."""

    product: int
    load: int | None = None
    read: np.ndarray | None = None


class UnreadSums(Listener):
    """Warns of both, and of what is read in part. By CTA, the accumulators that products have
    written."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._partly = PartlyReadSums(launch)
        self._of: dict[Cta, dict[Span, _Sums]] = defaultdict(dict)

    def columns_issued(self, cta: Cta, access: Access) -> None:
        if access.shape is not None:
            before = self._of[cta].get(access.span)
            self._judge(before, access.adds)
            if before is not None and access.adds is False:
                self._gone(cta, access.span, before)
            self._of[cta][access.span] = _Sums(access.line)

    def _judge(self, before: _Sums | None, adds: bool | None) -> None:
        if before is None or adds is None:
            return
        if adds and before.load is not None:
            self._launch.warn(
                "stale-sums",
                f"this tcgen05.mma adds to the sums of ptx:{before.product}, which the tcgen05.ld"
                f" of ptx:{before.load} has read; enable-input-d must be false for the first step"
                " of a tile",
            )
        if not adds and before.load is None:
            self._launch.warn(
                "lost-sums",
                f"this tcgen05.mma, whose enable-input-d is false, replaces the sums of"
                f" ptx:{before.product}, which nothing has read",
            )

    def columns_used(self, cta: Cta, warp: Warp, claim: Claim, fences: bool) -> None:
        """Sums that are loaded have been read; where something else meets them, they are forgotten:
        a product may read them as an operand, and what is stored is new."""
        if claim.what == "tcgen05.mma" or not self._of.get(cta):
            return
        sums = self._of[cta]
        for span in [span for span in sums if span.meets(claim.span)]:
            if claim.what == "tcgen05.ld":
                self._loaded(sums[span], span, claim.span, warp)
                continue
            if claim.what == "tcgen05.dealloc":
                self._gone(cta, span, sums[span])
            del sums[span]

    def _loaded(self, sums: _Sums, span: Span, part: Span, warp: Warp) -> None:
        sums.load = warp.program.source[warp.split.pc].line
        if sums.read is None:
            sums.read = read_of(span)
        mark(sums.read, span, part)

    def _gone(self, cta: Cta, span: Span, sums: _Sums) -> None:
        if sums.read is not None:
            self._partly.gone(cta, span, sums.read, sums.product)

    def finished(self) -> None:
        if self._launch.report.workers == 1:
            self._partly.tell()

    def columns_freed(self, cta: Cta, span: Span) -> None:
        self._of.pop(cta, None)

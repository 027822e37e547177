"""The rank of a CTA in its cluster, and the masks and ranks that follow from it."""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.mlir import arith, ir
from ....dialects.tile import KernelOp
from ... import build
from ...cluster import Cluster
from ...plan import fallback_cluster_of
from ...team import in_preferred, place_op


class CtaPlace(NamedTuple):
    """(x, y) of this CTA in its cluster, numbers where the cluster has one CTA that way.

    `first_rank` is the rank of the first CTA with the same part of K. `issues` is true in the
    leader CTA of a pair; None without pairs. Where a kernel has a `fallback`, that is this CTA's
    place in such a cluster, which it runs in unless `preferred` holds.
    """

    cluster: Cluster
    x: ir.Value | int
    y: ir.Value | int
    first_rank: ir.Value | int
    issues: ir.Value | None
    fallback: CtaPlace | None = None
    preferred: ir.Value | None = None

    @staticmethod
    def of(kernel: KernelOp, cluster: Cluster) -> CtaPlace:
        """The values of the kernel's `sm.cta_place`; a CTA alone needs none."""
        if cluster.size == 1:
            return CtaPlace(cluster, 0, 0, 0, None)
        op = place_op(kernel)
        place = CtaPlace(
            cluster,
            op.along_m if cluster.m > 1 else 0,
            op.along_n if cluster.n > 1 else 0,
            op.first if cluster.split > 1 else 0,
            op.leads if cluster.pair else None,
        )
        smaller = fallback_cluster_of(kernel)
        return place if smaller is None else place._with(smaller, in_preferred(kernel))

    def _with(self, smaller: Cluster, preferred: ir.Value) -> CtaPlace:
        """With the place in a fallback cluster: some of the CTAs of a preferred one, in order."""
        x = self.x % smaller.m if smaller.m > 1 else 0
        y = self.y % smaller.n if smaller.n > 1 else 0
        fallback = CtaPlace(smaller, x, y, 0, self.issues)
        return self._replace(fallback=fallback, preferred=preferred)

    def is_first(self) -> ir.Value | None:
        """Whether this is the cluster's first CTA; None where it is the only one."""
        here = [build.equal(value, 0) for value in (self.x, self.y) if not isinstance(value, int)]
        if not here:
            return None
        return here[0] if len(here) == 1 else arith.andi(*here)

    def pair_start(self) -> ir.Value | int:
        """x of the first CTA of this pair."""
        x = self.x
        return x if isinstance(x, int) or not self.cluster.pair else x - x % 2

    def leader_rank(self) -> ir.Value | int:
        """The rank of that CTA, among those with the same part of K."""
        own = self._rank(self.pair_start(), self.y)
        if self.fallback is None:
            return own
        return self._either(own, self.fallback.leader_rank())

    def part(self, axis: str) -> ir.Value | int:
        """This CTA's number among those in line along "m" or "n" that need the same tile."""
        if axis == "n":
            return self.y
        return self.x // 2 if self.cluster.pair else self.x

    def parts(self, axis: str, parts: int) -> tuple[ir.Value, ir.Value]:
        """The first and the end of the parts that this CTA loads of a tile that those in line need,
        in a kernel with a fallback: its own, and in a fallback cluster those of its share."""
        assert self.fallback is not None
        own, smaller = build.as_value(self.part(axis)), self.fallback.cluster
        line = smaller.n if axis == "n" else smaller.m // 2 if smaller.pair else smaller.m
        share = parts // line
        first = build.as_value(self.fallback.part(axis) * share)
        first = self._either(own, first)
        return first, first + self._either(build.constant(1), build.constant(share))

    def peers(self, axis: str) -> ir.Value:
        """Mask of those that need the same tile of A, in line along N, or of B, along M."""
        own = self._peers(axis)
        return own if self.fallback is None else self._either(own, self.fallback.peers(axis))

    def _either(self, own: ir.Value | int, in_fallback: ir.Value | int) -> ir.Value:
        """A value in a preferred cluster, or the one in a fallback cluster."""
        assert self.preferred is not None  # there is a fallback
        return arith.select(self.preferred, build.as_value(own), build.as_value(in_fallback))

    def _peers(self, axis: str) -> ir.Value:
        if axis == "n":
            return self._line(self.cluster.a_peers, self.x, 0)
        x = self.x % 2 if self.cluster.pair else 0
        return self._line(self.cluster.b_peers, x, self.y)

    def mask(self, pair: bool, axes: list[str]) -> ir.Value:
        """Mask of this CTA or its pair, those in line with it along N, and the line along M."""
        mask = self._mask(pair, axes)
        return mask if self.fallback is None else self._either(mask, self.fallback.mask(pair, axes))

    def _mask(self, pair: bool, axes: list[str]) -> ir.Value:
        own, x = (0b11, self.pair_start()) if pair else (0b1, self.x)
        ranks = self.cluster.a_peers * own if "n" in axes else own
        mask = self._line(ranks, x, 0 if "n" in axes else self.y)
        if "m" in axes:
            mask = arith.ori(mask, self._line((1 << self.cluster.m) - 1, 0, self.y))
        return mask

    def _line(self, ranks: int, along_m: ir.Value | int, along_n: ir.Value | int) -> ir.Value:
        """Mask (i16) of `ranks`, given for the CTA at (0, 0), moved to another place of a plane."""
        shift = self._rank(along_m, along_n) + self.first_rank
        known = isinstance(shift, int)
        mask = build.constant(ranks << shift) if known else build.shift_left(ranks, shift)
        return arith.trunci(ir.IntegerType.get_signless(16), mask)

    def _rank(self, along_m: ir.Value | int, along_n: ir.Value | int) -> ir.Value | int:
        return along_m + along_n * self.cluster.m

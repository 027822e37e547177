"""The rank of a CTA in its cluster, and the masks and ranks that follow from it."""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.mlir import arith, ir
from ....dialects.tile import KernelOp
from ... import build
from ...cluster import Cluster
from ...team import place_op


class CtaPlace(NamedTuple):
    """(x, y) of this CTA in its cluster, numbers where the cluster has one CTA that way.

    `first_rank` is the rank of the first CTA with the same part of K. `issues` is true in the
    leader CTA of a pair; None without pairs.
    """

    cluster: Cluster
    x: ir.Value | int
    y: ir.Value | int
    first_rank: ir.Value | int
    issues: ir.Value | None

    @staticmethod
    def of(kernel: KernelOp, cluster: Cluster) -> CtaPlace:
        """The values of the kernel's `sm.cta_place`; a CTA alone needs none."""
        if cluster.size == 1:
            return CtaPlace(cluster, 0, 0, 0, None)
        op = place_op(kernel)
        return CtaPlace(
            cluster,
            op.along_m if cluster.m > 1 else 0,
            op.along_n if cluster.n > 1 else 0,
            op.first if cluster.split > 1 else 0,
            op.leads if cluster.pair else None,
        )

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
        return self._rank(self.pair_start(), self.y)

    def part(self, axis: str) -> ir.Value | int:
        """This CTA's number among those in line along "m" or "n" that need the same tile."""
        if axis == "n":
            return self.y
        return self.x // 2 if self.cluster.pair else self.x

    def peers(self, axis: str) -> ir.Value:
        """Mask of those that need the same tile of A, in line along N, or of B, along M."""
        if axis == "n":
            return self._line(self.cluster.a_peers, self.x, 0)
        x = self.x % 2 if self.cluster.pair else 0
        return self._line(self.cluster.b_peers, x, self.y)

    def mask(self, pair: bool, axes: list[str]) -> ir.Value:
        """Mask of this CTA or its pair, those in line with it along N, and the line along M."""
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

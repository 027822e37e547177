"""Clusters: who sends to whom, as masks of ranks (PTX ISA, %cluster_ctarank).

rank = x + m * y for the CTA at x along M and y along N. With pairs, ranks 2q and 2q + 1 are one,
and the even one issues its MMAs and owns the barriers that count for both.
"""

from __future__ import annotations

from typing import NamedTuple


class Cluster(NamedTuple):
    """`m` x `n` CTAs, in pairs or not; which operands are multicast.

    `split` such planes of CTAs share the tiles of C, each with a part of K; operands are shared
    within a plane. Ranks and masks are those of the first plane: z planes on, m * n * z more.
    """

    m: int = 1
    n: int = 1
    pair: bool = False
    shares_a: bool = False
    shares_b: bool = False
    split: int = 1

    @property
    def size(self) -> int:
        return self.plane * self.split

    @property
    def plane(self) -> int:
        """CTAs with the same part of K."""
        return self.m * self.n

    @property
    def a_peers(self) -> int:
        """Ranks that need the same A as the CTA at (0, 0): a line along N."""
        return sum(1 << (self.m * y) for y in range(self.n))

    @property
    def b_peers(self) -> int:
        """Ranks that need the same B as (0, 0): a line along M, every second one in pairs."""
        return sum(1 << x for x in range(0, self.m, 2 if self.pair else 1))

    def senders(self, rank: int) -> int:
        """Mask of the ranks that write operand tiles into this CTA's slots."""
        x, y = rank % self.m, rank // self.m
        own = 1 << rank
        line_a = self.a_peers << x if self.shares_a else own
        first = x & 1 if self.pair else 0
        line_b = self.b_peers << (self.m * y + first) if self.shares_b else own
        return line_a | line_b

    def released(self, rank: int) -> int:
        """Mask of the ranks that must hear when the MMAs that `rank` issued have read a slot."""
        return self.senders(rank) | (self.senders(rank ^ 1) if self.pair else 0)

    def release_count(self) -> int:
        """How many commits make a slot empty: the issuing CTAs that release it at each rank."""
        issuers = range(0, self.plane, 2 if self.pair else 1)
        counts = {
            sum(self.released(issuer) >> rank & 1 for issuer in issuers)
            for rank in range(self.plane)
        }
        assert len(counts) == 1, "every CTA of a cluster stands in the same pattern"
        return counts.pop()

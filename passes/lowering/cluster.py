"""Clusters: where a CTA stands in its own, and whom it multicasts to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """`m` x `n` CTAs; rank = x + m * y for the CTA at x along M and y along N."""

    m: int = 1
    n: int = 1

    @property
    def size(self) -> int:
        return self.m * self.n

"""`sm.team`, `sm.cta_place`, `sm.in_preferred`: thread, lane and rank from special registers.

Patterns find the values of these ops and use them, so that they are converted after all others.
"""

from __future__ import annotations

from ....dialects.mlir import arith, ir
from ....dialects.sm.threads import CtaPlaceOp, InPreferredOp, TeamOp, WarpsOp
from ....dialects.target import WARP_THREADS, Target
from ... import build
from ...base import walk
from ...cluster import Cluster
from ...team import Team, place_op, team_op
from .scope import Scope

NUMBERS = (TeamOp, CtaPlaceOp, InPreferredOp)


def number_kernel(scope: Scope) -> None:
    """All threads of the CTA count from 0, and CTAs of a cluster know their places."""
    op = team_op(scope.kernel)
    with ir.InsertionPoint(op), op.location:
        thread = build.special("tid.x")
        lane, first_warp = thread % WARP_THREADS, build.less(thread, WARP_THREADS)
        leader = arith.andi(elect(scope.target, lane), first_warp)
    _replace(op, [thread, lane, leader])
    if scope.cluster.size > 1:
        place = place_op(scope.kernel)
        with ir.InsertionPoint(place), place.location:
            _replace(place, _place(scope.cluster))
    for asked in walk(scope.kernel, InPreferredOp):
        with ir.InsertionPoint(asked), asked.location:
            _replace(asked, [build.equal(build.special("cluster_nctarank"), scope.cluster.size)])


def number_in(op: WarpsOp) -> ir.Value:
    """Threads of a role count from 0 after those of the warps before; emitted for all threads."""
    return Team.of(op).thread - WARP_THREADS * op.first.value


def number_team(scope: Scope, op: WarpsOp, thread: ir.Value) -> None:
    """A role's threads have that number."""
    own, lane = team_op(op), Team.of(op).lane
    with ir.InsertionPoint(own), own.location:
        leader = arith.andi(elect(scope.target, lane), build.less(thread, WARP_THREADS))
    _replace(own, [thread, lane, leader])


def elect(target: Target, lane: ir.Value) -> ir.Value:
    """True in one lane of the warp: the first, where the chip has no elect.sync."""
    return build.elect() if target.async_agents else build.equal(lane, 0)


def _place(cluster: Cluster) -> list[ir.Value]:
    """Along M and N, the first CTA with the same part of K, and whether it leads its pair."""
    x = build.special("cluster_ctaid.x") if cluster.m > 1 else build.constant(0)
    y = build.special("cluster_ctaid.y") if cluster.n > 1 else build.constant(0)
    split = cluster.split > 1
    first = build.special("cluster_ctaid.z") * cluster.plane if split else build.constant(0)
    leads = build.equal(x % 2, 0) if cluster.pair else build.true()
    return [x, y, first, leads]


def _replace(op: TeamOp | CtaPlaceOp | InPreferredOp, values: list[ir.Value]) -> None:
    for result, value in zip(op.operation.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()

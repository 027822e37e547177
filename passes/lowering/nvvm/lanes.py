"""Shuffles and votes, from `sm` to llvm: one pattern per op."""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ... import build

ALL_LANES, LAST_LANE = -1, 31


def shuffle(op: sm.ShuffleOp) -> ir.Value:
    return _shuffled("bfly.f32", op.value, build.constant(op.apart.value), LAST_LANE)


def shuffle_up(op: sm.ShuffleUpOp) -> ir.Value:
    """Lanes from the first one on are read."""
    return _shuffled("up.i32", op.value, build.constant(op.apart.value), 0)


def shuffle_from(op: sm.ShuffleFromOp) -> ir.Value:
    return _shuffled("idx.i32", op.value, op.lane, LAST_LANE)


def _shuffled(how: str, value: ir.Value, where: ir.Value, clamp: int) -> ir.Value:
    every, bound = build.constant(ALL_LANES), build.constant(clamp)
    name = f"llvm.nvvm.shfl.sync.{how}"
    return llvm.call_intrinsic(value.type, name, [every, value, where, bound])


def ballot(op: sm.BallotOp) -> ir.Value:
    given = [build.constant(ALL_LANES), op.flag]
    return llvm.call_intrinsic(op.lanes.type, "llvm.nvvm.vote.ballot.sync", given)


PATTERNS = {
    sm.ShuffleOp: shuffle,
    sm.ShuffleUpOp: shuffle_up,
    sm.ShuffleFromOp: shuffle_from,
    sm.BallotOp: ballot,
}

"""Puts the MMAs of a step along K in a loop over one or two of them.

wgmma_fence                            wgmma_fence
wgmma sums, a, b                       for %turn = 0 … 2 {
wgmma sums, a + 32, b + 32         →     wgmma sums, a + 64 %turn, b + 64 %turn
wgmma sums, a + 64, b + 64               wgmma sums, a + 32 + 64 %turn, b + 32 + 64 %turn
wgmma sums, a + 96, b + 96               wgmma_commit }
wgmma_commit                           …
…                                      wgmma_wait 2
wgmma_wait 1

ptxas takes some 10 ms for each MMA of a hundred registers or more. The MMAs of a turn are a group
of their own, since ptxas does not know in a loop which one is the last of a group.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir, scf
from ....dialects.mma_units import WGMMA, WGMMA_WIDE
from ....dialects.sm.tensor_core import PENDING_MAX
from ....dialects.sm.types import attribute_of
from ....dialects.target import Target
from ....dialects.tile import KernelOp, MmaOp
from ... import build
from ...base import attributes_of, walk
from ...clone import constant_of, is_pure
from ..operands.descriptors import encode_bytes
from ..operands.mma_operands import advance
from .first_step import WIDE

TOGETHER, ALONE = 1, 2
"""Steps in a turn. Where warpgroups multiply one tile together, the tensor core has
those of the other one meanwhile."""
KEPT = "#llvm.loop_annotation<unroll = <disable = true>>"
"""What keeps LLVM and ptxas from writing the turns out again."""


class Group(NamedTuple):
    """MMAs along K, those of each step into the same sums in the same order, and their commit."""

    steps: list[list[Any]]
    commit: Any


def steps_of_turns(kernel: KernelOp, target: Target) -> int:
    """How many steps along K a turn of such a loop takes; 0 where there is none."""
    if target.mma.name not in (WGMMA.name, WGMMA_WIDE.name):
        return 0
    warpgroups = [target.mma_warpgroups(*op.acc.type.shape) or 0 for op in walk(kernel, MmaOp)]
    return TOGETHER if max(warpgroups, default=0) > 1 else ALONE


def put_steps_in_loops(kernel: sm.KernelOp, size: int) -> None:
    """Where all groups of a kernel are of as many steps, a multiple of the `size` of a turn."""
    commits, waits = walk(kernel, sm.WgmmaCommitOp), walk(kernel, sm.WgmmaWaitOp)
    groups = [Group(_steps_before(commit), commit) for commit in commits]
    counts = {len(group.steps) for group in groups}
    turns, rest = divmod(counts.pop(), size) if len(counts) == 1 else (0, 0)
    pending = max((wait.pending.value for wait in waits), default=0)
    if turns < 2 or rest or pending * turns > PENDING_MAX:
        return
    for group in groups:
        _put_in_loop(group, size)
    for wait in waits:
        wait.operation.attributes["pending"] = attribute_of(wait.pending.value * turns)


def _steps_before(commit: Any) -> list[list[Any]]:
    """The steps of the group that a commit closes; none if they can't be turns of a loop."""
    ops = _ops_before(commit)
    width = sum(_slot(op) is not None for op in ops)
    if not width or len(ops) % width:
        return []
    steps = [ops[at : at + width] for at in range(0, len(ops), width)]
    following = [pair for two in pairwise(steps) for pair in zip(*two, strict=True)]
    strides = {_stride(op, later) for op, later in following}
    chained = all(_hands_on(op, later) and _alike(op, later) for op, later in following)
    kept = all(_is_kept(*ends) for ends in zip(steps[0], steps[-1], strict=True))
    return steps if chained and kept and len(strides) == 1 else []


def _ops_before(commit: Any) -> list[Any]:
    """The MMAs of its group in program order; none where something else stands among them."""
    found: list[Any] = []
    ops = [op for op in commit.operation.block.operations if not is_pure(op)]
    place = next(number for number, op in enumerate(ops) if op.operation == commit.operation)
    for op in reversed(ops[:place]):
        if isinstance(op, sm.WgmmaFenceOp):
            return found[::-1]
        if not isinstance(op, sm.WgmmaOp) or op.n.value < WIDE:
            return []
        found.append(op)
    return []


def _stride(op: Any, later: Any) -> tuple[int, int]:
    """How many bytes A and B are further in the next step."""
    return (
        later.a_offset.value - op.a_offset.value,
        later.b_offset.value - op.b_offset.value,
    )


def _hands_on(op: Any, later: Any) -> bool:
    """Whether an MMA gives its sums to a later one alone."""
    return later.d == op.sum and len(list(op.sum.uses)) == 1


def _alike(op: Any, later: Any) -> bool:
    fields = ("n", "k", "first", "a_type", "b_type", "d_type", "a_major", "b_major")
    return (
        (op.a, op.b) == (later.a, later.b)
        and bool(constant_of(later.accumulate))
        and all(getattr(op, name) == getattr(later, name) for name in fields)
    )


def _slot(op: Any) -> ir.Value | None:
    """The slot that an MMA's sums are loaded from, for it alone."""
    owner = op.d.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.load" or len(list(op.d.uses)) > 1:
        return None
    return owner.operands[0]


def _store(op: Any) -> ir.Operation | None:
    """What stores an MMA's sums, if nothing else reads them."""
    users = [use.owner.operation for use in op.sum.uses]
    return users[0] if [user.name for user in users] == ["llvm.store"] else None


def _is_kept(first: Any, last: Any) -> bool:
    """Whether the sums of the last of a chain of MMAs go where those of the first came from."""
    store, slot = _store(last), _slot(first)
    return store is not None and slot is not None and store.operands[1] == slot


def _put_in_loop(group: Group, size: int) -> None:
    steps, commit = group
    slots = [slot for op in steps[0] if (slot := _slot(op)) is not None]
    strides = [encode_bytes(size * each) for each in _stride(steps[0][0], steps[1][0])]
    with ir.InsertionPoint(commit), commit.location:
        bounds = [build.constant(bound) for bound in (0, len(steps) // size, 1)]
        loop = scf.ForOp(*bounds)
        loop.operation.attributes["loop_annotation"] = ir.Attribute.parse(KEPT)
        with ir.InsertionPoint(loop.body):
            turn = loop.induction_variable
            later = arith.cmpi(arith.CmpIPredicate.ne, turn, build.constant(0))
            for number, step in enumerate(steps[:size]):
                for op, slot in zip(step, slots, strict=True):
                    flag = op.accumulate if number else arith.ori(op.accumulate, later)
                    _multiply(op, slot, [turn * units for units in strides], flag)
            sm.WgmmaCommitOp.of()
            scf.YieldOp([])
    _erase(group)


def _multiply(op: Any, slot: ir.Value, units: list[ir.Value], accumulate: ir.Value) -> None:
    """The MMA on what the slot holds, and with A and B as many units of 16 bytes further."""
    sums = llvm.load(op.d.type, slot)
    a, b = (advance(each, by) for each, by in zip((op.a, op.b), units, strict=True))
    made = sm.WgmmaOp.of(sums, a, b, accumulate, **attributes_of(op), sum=sums.type)
    llvm.store(made.sum, slot)


def _erase(group: Group) -> None:
    """Users first."""
    steps, commit = group
    loads = [op.d.owner for op in steps[0]]
    stores = [store for op in steps[-1] if (store := _store(op)) is not None]
    ops = [op.operation for op in chain.from_iterable(steps)]
    for each in (*stores, *reversed(ops), *loads, commit.operation):
        each.erase()

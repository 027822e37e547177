"""What the threads of a kernel run: roles, loops, and who runs each op.

One thread of a team, its leader, runs pipe ops, TMA copies and MMAs; in a pair, MMAs run in the
issuing CTA only. All threads of the team copy tiles and store results; where they hold the
accumulator, they also issue the MMAs, and wait for and release the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...dialects.mlir import ir, nvvm, scf
from ...dialects.pipe import (
    AcquireOp,
    ClaimOp,
    CommitOp,
    CreateOp,
    ForEachClaimOp,
    ForEachTurnOp,
    ReleaseOp,
    RoleOp,
    SetRegistersOp,
    SkipOp,
    TileOp,
    TurnType,
    WaitOp,
)
from ...dialects.tile import (
    MMAS,
    AccumulatorOp,
    AwaitMmaOp,
    CopyOp,
    CtaTileOp,
    ForEachTileOp,
    LoadOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    ReducedStoreOp,
    SplitRankOp,
    StagedStoreOp,
    StoreOp,
    TensorMapOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile_types import AccumulatorType
from ..base import refused, walk
from ..clone import is_pure
from . import build as b
from .claims import lower_claim, lower_for_each_claim
from .copies import lower_copy, lower_load
from .frame import Frame
from .mma import lower_mma
from .operands import lower_tma_load, lower_tma_multicast
from .pieces import finish_stores
from .pipes import (
    drain,
    finish_copies,
    lower_acquire,
    lower_commit,
    lower_release,
    lower_skip,
    lower_tile,
    lower_wait,
)
from .plan import has_copies, is_synchronous
from .reduced_store import lower_reduced_store, reduce_registers
from .register_stores import stage_registers, store_registers
from .staged_store import lower_staged_store
from .store import lower_store
from .tiles import (
    lower_cta_tile,
    lower_for_each_tile,
    lower_for_each_turn,
    lower_pair_rank,
    lower_split_rank,
)
from .wgmma import lower_await_mma, lower_set_registers, lower_wgmma

LEADER, ISSUER = "leader", "issuer"


def emit_program(frame: Frame, block: ir.Block) -> None:
    """What one team runs from start to end."""
    _emit_block(frame, block, frozenset())
    owner = block.owner.opview
    if walk(owner, RoleOp):
        return
    if frame.lets_start and walk(owner, TmaLoadOp | TmaMulticastOp | CopyOp | LoadOp):
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
    if frame.cluster.loads_together:
        _drain(frame, owner)
    if walk(frame.kernel, ReducedStoreOp) and not walk(owner, ReducedStoreOp):
        frame.meet_cluster()
    if walk(owner, StagedStoreOp):
        finish_stores(frame)


def _drain(frame: Frame, owner: ir.OpView) -> None:
    """The producer of a cluster stays until nothing is on its way to its barriers."""
    rings = list(dict.fromkeys(acquire.ring for acquire in walk(owner, AcquireOp)))
    for ring in rings:
        if frame.plan.rings[ring].kind == "operands":
            with frame.team.once():
                drain(frame, ring)


def _emit_block(frame: Frame, block: ir.Block, held: frozenset[str]) -> None:
    """Emit the ops of a block; runs of ops that need the same condition share one `if`.

    `held` is what the place of emission has ensured already.
    """
    group: scf.IfOp | None = None
    group_needs: frozenset[str] = frozenset()
    for op in _program(block):
        needs = _needs(frame, op) - held
        if _is_pure(op) or not needs:
            group = group if _is_pure(op) else None
            with ir.InsertionPoint(group) if group else ir.InsertionPoint.current:
                _emit_op(frame, op, held)
            continue
        if group is None or needs != group_needs:
            group, group_needs = _open_group(frame, needs), needs
        with ir.InsertionPoint.at_block_terminator(group.then_block):
            _emit_op(frame, op, held | needs)


def _open_group(frame: Frame, needs: frozenset[str]) -> scf.IfOp:
    """An empty `if`, to be filled before its terminator; the warp is converged again after it."""
    condition = b.both(
        frame.team.leader if LEADER in needs else None, frame.issues if ISSUER in needs else None
    )
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([])
    if LEADER in needs:
        frame.team.converge()
    return branch


def _is_pure(op: ir.OpView) -> bool:
    return is_pure(op) or isinstance(op, (*HANDLES, PairRankOp, SplitRankOp))


def _needs(frame: Frame, op: ir.OpView) -> frozenset[str]:
    """The conditions under which a thread runs an op: one thread of the team, the pair's issuer."""
    if isinstance(op, ClaimOp):
        return frozenset({LEADER})
    if isinstance(op, scf.ForOp | ForEachTileOp | ForEachClaimOp | ForEachTurnOp):
        block = op.body if isinstance(op, scf.ForOp) else op.body.blocks[0]
        inner = [_needs(frame, each) for each in _program(block) if not _is_pure(each)]
        return frozenset.intersection(*inner) if inner else frozenset()
    issuing = _issuing(frame)
    if isinstance(op, MMAS):
        return frozenset() if is_synchronous(op) else issuing
    if isinstance(op, TmaLoadOp | TmaMulticastOp):
        return frozenset({LEADER})
    if isinstance(op, TileOp):
        return _needs(frame, op.slot.owner.opview)
    if isinstance(op, AcquireOp | CommitOp | WaitOp | ReleaseOp):
        return _pipe_needs(op, issuing)
    return frozenset()


def _issuing(frame: Frame) -> frozenset[str]:
    """Who issues MMAs: all threads of a team, or one of them."""
    if not frame.target.one_thread_issues:
        return frozenset()
    return frozenset({LEADER, ISSUER} if frame.cluster.pair else {LEADER})


def _pipe_needs(op: ir.OpView, issuing: frozenset[str]) -> frozenset[str]:
    """Accumulators are filled, and operands read, by the issuer; the other ends are the team's.

    Turns are waited for and handed over by all warps of a team.
    """
    if isinstance(op.ring.type.tiles[0], TurnType):
        return frozenset()
    fills = isinstance(op, AcquireOp | CommitOp)
    if isinstance(op.ring.type.tiles[0], AccumulatorType):
        return issuing if fills else frozenset()
    if not fills:
        return issuing
    return frozenset() if has_copies(op.ring) else frozenset({LEADER})


def _program(block: ir.Block) -> list[ir.OpView]:
    return [op for op in list(block.operations) if op.operation.name != "scf.yield"]


def _emit_op(frame: Frame, op: ir.OpView, held: frozenset[str]) -> None:
    with op.operation.location:
        if isinstance(op, scf.ForOp):
            _emit_loop(frame, op, held)
        elif isinstance(op, RoleOp):
            _emit_role(frame, op)
        elif isinstance(op, ForEachTileOp):
            body = partial(_emit_block, frame, op.body.blocks[0], held)
            lower_for_each_tile(frame, op, body)
        elif isinstance(op, ForEachTurnOp):
            body = partial(_emit_block, frame, op.body.blocks[0], held)
            lower_for_each_turn(frame, op, body)
        elif isinstance(op, ForEachClaimOp):
            body = partial(_emit_block, frame, op.body.blocks[0], held)
            lower_for_each_claim(frame, op, LEADER in held, body)
        elif lowering := _lowering(frame, op):
            lowering(frame, op)
        elif is_pure(op):
            _copy(frame, op)
        else:
            raise refused(op, "lower-to-nvvm has no lowering for it")


def _lowering(frame: Frame, op: ir.OpView) -> Callable[[Frame, Any], None] | None:
    return LOWERINGS[frame.target.mma].get(type(op))


def _emit_role(frame: Frame, op: RoleOp) -> None:
    roles = walk(frame.kernel, RoleOp)
    number = [role.operation for role in roles].index(op.operation)
    first = sum(role.warps.value for role in roles[:number])
    with frame.role(first, op.warps.value, number + 1):
        emit_program(frame, op.body.blocks[0])


def _emit_loop(frame: Frame, op: scf.ForOp, held: frozenset[str]) -> None:
    if len(op.inner_iter_args):
        raise refused(op, "a loop of a kernel must not carry values")
    bounds = [frame.values[bound] for bound in (op.lowerBound, op.upperBound, op.step)]
    copy = scf.ForOp(*bounds)
    frame.values[op.induction_variable] = copy.induction_variable
    with ir.InsertionPoint(copy.body):
        _emit_block(frame, op.body, held)
        scf.YieldOp([])
    finish_copies(frame, op)


def _copy(frame: Frame, op: ir.OpView) -> None:
    clone = op.operation.clone()
    for index, operand in enumerate(op.operation.operands):
        clone.operands[index] = frame.values[operand]
    for old, new in zip(op.operation.results, clone.results, strict=True):
        frame.values[old] = new


def _lower_handle(frame: Frame, op: ir.OpView) -> None:
    """A compile-time handle: the plan knows where it lies."""


HANDLES = (TensorMapOp, CreateOp, AccumulatorOp)
Lowerings = dict[type, Callable[[Frame, Any], None]]
_TCGEN05: Lowerings = {
    CtaTileOp: lower_cta_tile,
    ClaimOp: lower_claim,
    **dict.fromkeys(HANDLES, _lower_handle),
    LoadOp: lower_load,
    CopyOp: lower_copy,
    TmaLoadOp: lower_tma_load,
    TmaMulticastOp: lower_tma_multicast,
    PairRankOp: lower_pair_rank,
    SplitRankOp: lower_split_rank,
    PairMmaOp: lower_mma,
    AcquireOp: lower_acquire,
    CommitOp: lower_commit,
    WaitOp: lower_wait,
    TileOp: lower_tile,
    ReleaseOp: lower_release,
    MmaOp: lower_mma,
    StoreOp: lower_store,
    StagedStoreOp: lower_staged_store,
    ReducedStoreOp: lower_reduced_store,
}
TENSOR_MEMORY_ONLY = (PairMmaOp, PairRankOp, ClaimOp)
_WGMMA: Lowerings = {
    **{op: lower for op, lower in _TCGEN05.items() if op not in TENSOR_MEMORY_ONLY},
    MmaOp: lower_wgmma,
    AwaitMmaOp: lower_await_mma,
    SetRegistersOp: lower_set_registers,
    SkipOp: lower_skip,
    StoreOp: store_registers,
    StagedStoreOp: stage_registers,
    ReducedStoreOp: reduce_registers,
}
LOWERINGS = {"tcgen05.mma": _TCGEN05, "wgmma.mma_async": _WGMMA}

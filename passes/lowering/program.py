"""What the threads of a kernel run: roles, loops, and who runs each op.

Who runs an op is said by the `sm.warps` and `sm.run` that it stands in (`assign-threads`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from ...dialects import sm
from ...dialects.mlir import ir, scf
from ...dialects.pipe import (
    AcquireOp,
    ClaimOp,
    CommitOp,
    DrainOp,
    ForEachClaimOp,
    ReleaseOp,
    SetRegistersOp,
    SkipOp,
    TileOp,
    WaitOp,
)
from ...dialects.sm_memory import MEMORY_OPS
from ...dialects.sm_threads import (
    ISSUER,
    TEAM,
    ConvergeOp,
    PrologueOp,
    RunOp,
    ThreadOp,
    WarpsOp,
    who_runs,
)
from ...dialects.tile import (
    AccumulatorOp,
    AwaitMmaOp,
    CopyOp,
    CtaTileOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    ReducedStoreOp,
    SplitRankOp,
    StoreOp,
    TensorMapOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile_place import PlaceOp
from ...dialects.tile_stores import (
    AwaitSumsOp,
    NextBufferOp,
    StagingBufferOp,
    TmaStoreOp,
    WritePieceOp,
)
from ...dialects.tile_threads import ClearUnitOp
from ..base import refused
from ..clone import is_pure
from ..thread_rules import program
from . import build as b
from .claims import lower_claim, lower_for_each_claim
from .clearing import lower_clear_unit
from .copies import lower_copy
from .frame import Frame
from .mma import lower_mma
from .operands import lower_tma_load, lower_tma_multicast
from .pieces import lower_next_buffer, lower_staging_buffer, lower_tma_store
from .pipes import (
    finish_copies,
    lower_acquire,
    lower_commit,
    lower_drain,
    lower_release,
    lower_skip,
    lower_tile,
    lower_wait,
)
from .reduced_store import lower_reduced_store, reduce_registers
from .register_stores import await_registers, store_registers, write_registers
from .staged_store import await_sums, write_piece
from .store import lower_store
from .tiles import (
    lower_cta_tile,
    lower_pair_rank,
    lower_place,
    lower_split_rank,
)
from .wgmma import lower_await_mma, lower_set_registers, lower_wgmma


def emit_block(frame: Frame, block: ir.Block) -> None:
    """What one team runs from start to end, or a part of it."""
    for op in program(block):
        _emit_op(frame, op)


def emit_prologue(frame: Frame, block: ir.Block) -> None:
    """What all threads do before they meet for the first time."""
    for op in block.operations:
        if isinstance(op, PrologueOp):
            emit_block(frame, op.body.blocks[0])


def lower_thread(frame: Frame, op: ThreadOp) -> None:
    frame.values[op.number] = frame.team.thread


def _emit_op(frame: Frame, op: ir.OpView) -> None:
    with op.operation.location:
        if isinstance(op, scf.ForOp):
            _emit_loop(frame, op)
        elif isinstance(op, WarpsOp):
            _emit_team(frame, op)
        elif isinstance(op, RunOp):
            _emit_region(frame, op)
        elif isinstance(op, ConvergeOp):
            frame.team.converge()
        elif isinstance(op, ForEachClaimOp):
            body = partial(emit_block, frame, op.body.blocks[0])
            lower_for_each_claim(frame, op, who_runs(op) != TEAM, body)
        elif lowering := _lowering(frame, op):
            lowering(frame, op)
        elif is_pure(op) or isinstance(op, INSTRUCTIONS):
            _copy(frame, op)
        else:
            raise refused(op, "select-instructions has no lowering for it")


def _emit_region(frame: Frame, op: RunOp) -> None:
    """An `if` for the threads that the region is for, of those that are there."""
    lane = frame.team.leader if who_runs(op) == TEAM else None
    with b.when(b.both(lane, frame.issues if op.by.value == ISSUER else None)):
        emit_block(frame, op.body.blocks[0])


def _lowering(frame: Frame, op: ir.OpView) -> Callable[[Frame, Any], None] | None:
    return LOWERINGS[frame.target.mma].get(type(op))


def _emit_team(frame: Frame, op: WarpsOp) -> None:
    with frame.role(op.first.value, op.warps.value, op.barrier.value):
        emit_block(frame, op.body.blocks[0])


def _emit_loop(frame: Frame, op: scf.ForOp) -> None:
    if len(op.inner_iter_args):
        raise refused(op, "a loop of a kernel must not carry values")
    bounds = [frame.values[bound] for bound in (op.lowerBound, op.upperBound, op.step)]
    copy = scf.ForOp(*bounds)
    frame.values[op.induction_variable] = copy.induction_variable
    with ir.InsertionPoint(copy.body):
        emit_block(frame, op.body)
        scf.YieldOp([])
    finish_copies(frame, op)


def _copy(frame: Frame, op: ir.OpView) -> None:
    clone = op.operation.clone()
    for index, operand in enumerate(op.operation.operands):
        clone.operands[index] = frame.values[operand]
    for old, new in zip(op.operation.results, clone.results, strict=True):
        frame.values[old] = new


# Those that passes before this one place; they stay as they are.
INSTRUCTIONS = (
    sm.BulkCommitOp,
    sm.BulkWaitOp,
    sm.ClusterBarrierOp,
    sm.CtaBarrierOp,
    sm.FenceOp,
    sm.LaunchDependentsOp,
    sm.NamedBarrierOp,
    sm.SpecialRegisterOp,
)


def _lower_handle(frame: Frame, op: ir.OpView) -> None:
    """A compile-time handle, which the plan knows, or the prologue, which has been emitted."""


HANDLES = (PrologueOp, TensorMapOp, AccumulatorOp, *get_args(MEMORY_OPS))
Lowerings = dict[type, Callable[[Frame, Any], None]]
_TCGEN05: Lowerings = {
    CtaTileOp: lower_cta_tile,
    PlaceOp: lower_place,
    ThreadOp: lower_thread,
    ClearUnitOp: lower_clear_unit,
    ClaimOp: lower_claim,
    **dict.fromkeys(HANDLES, _lower_handle),
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
    DrainOp: lower_drain,
    MmaOp: lower_mma,
    StoreOp: lower_store,
    AwaitSumsOp: await_sums,
    StagingBufferOp: lower_staging_buffer,
    NextBufferOp: lower_next_buffer,
    WritePieceOp: write_piece,
    TmaStoreOp: lower_tma_store,
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
    AwaitSumsOp: await_registers,
    WritePieceOp: write_registers,
    ReducedStoreOp: reduce_registers,
}
LOWERINGS = {"tcgen05.mma": _TCGEN05, "wgmma.mma_async": _WGMMA}

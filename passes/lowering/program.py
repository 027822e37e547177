"""What the threads of a kernel run: roles, loops, and who runs each op.

Who runs an op is said by the `sm.warps` and `sm.run` that it stands in (`assign-threads`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm, scf
from ...dialects.pipe import SetRegistersOp, TileOp
from ...dialects.sm_memory import MEMORY_OPS
from ...dialects.sm_threads import (
    FIRST,
    ISSUER,
    TEAM,
    WARP,
    ConvergeOp,
    FirstWarpOp,
    PrologueOp,
    RunOp,
    ThreadOp,
    WarpsOp,
    who_runs,
)
from ...dialects.tile import (
    AccumulatorOp,
    CopyOp,
    CtaTileOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    SplitRankOp,
    TensorMapOp,
)
from ...dialects.tile_boxes import LoadBoxesOp, MulticastBoxesOp
from ...dialects.tile_place import PlaceOp
from ...dialects.tile_stores import AwaitSumsOp, TmaStoreOp, WritePieceOp
from ...dialects.tile_threads import (
    ClearUnitOp,
    PartialOp,
    ReadRowOp,
    ReadRowsOp,
    ThreadColumnOp,
    ThreadLanesOp,
    ThreadRowOp,
    WritePartialOp,
    WriteRowOp,
)
from .. import build
from ..base import refused
from ..clone import is_pure
from ..thread_rules import program
from .clearing import lower_clear_unit
from .copies import lower_copy, lower_cp_async_commit
from .frame import Frame
from .mma import lower_mma
from .operands import lower_load_boxes, lower_multicast_boxes
from .pieces import lower_tma_store
from .positions import (
    lower_advance_position,
    lower_barrier,
    lower_cta_mask,
    lower_leader_rank,
    lower_prefetch,
    lower_read_position,
    lower_read_tally,
    lower_slot,
    lower_slot_address,
    lower_tile,
    lower_tmem_base,
    lower_write_tally,
)
from .register_stores import await_registers, write_registers
from .rows import (
    lower_held_column,
    lower_held_row,
    lower_partial,
    lower_read_row,
    lower_read_rows,
    lower_thread_column,
    lower_thread_lanes,
    lower_thread_row,
    lower_write_partial,
    lower_write_row,
)
from .staged_store import await_sums, write_piece
from .tiles import (
    lower_cta_tile,
    lower_pair_rank,
    lower_place,
    lower_split_rank,
)
from .wgmma import lower_set_registers, lower_wgmma


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
        elif isinstance(op, FirstWarpOp):
            _emit_first_warp(frame, op)
        elif isinstance(op, scf.IfOp):
            _emit_branch(frame, op)
        elif isinstance(op, sm.EachRankOp):
            _emit_ranks(frame, op)
        elif isinstance(op, ConvergeOp):
            frame.team.converge()
        elif isinstance(op, scf.WhileOp):
            _emit_while(frame, op)
        elif lowering := _lowering(frame, op):
            lowering(frame, op)
        elif is_pure(op) or isinstance(op, INSTRUCTIONS):
            _copy(frame, op)
        else:
            raise refused(op, "select-instructions has no lowering for it")


def _emit_region(frame: Frame, op: RunOp) -> None:
    """An `if` for the threads that the region is for, of those that are there."""
    by = op.by.value
    if by == WARP:
        condition = build.elect()
    else:
        lane = frame.team.leader if who_runs(op) == TEAM else None
        issues = frame.issues if by == ISSUER else None
        condition = build.both(lane, frame.is_first() if by == FIRST else issues)
    with build.when(condition):
        emit_block(frame, op.body.blocks[0])


def _emit_first_warp(frame: Frame, op: FirstWarpOp) -> None:
    with build.when(frame.first_warp):
        emit_block(frame, op.body.blocks[0])


def _emit_branch(frame: Frame, op: scf.IfOp) -> None:
    if len(op.results) or len(op.elseRegion.blocks):
        raise refused(op, "a branch of a kernel must give no values and have no else")
    with build.when(frame.values[op.condition]):
        emit_block(frame, op.thenRegion.blocks[0])


def _emit_ranks(frame: Frame, op: sm.EachRankOp) -> None:
    """Lane r of each warp runs the body where rank r is in the mask."""
    block = op.body.blocks[0]
    ranks = arith.extui(build.i32(), frame.values[op.mask])
    # LLVM may compute what is there for lanes beyond, too.
    frame.values[block.arguments[0]] = frame.lane % frame.cluster.size
    with build.when(build.equal(arith.shrui(ranks, frame.lane) % 2, 1)):
        emit_block(frame, block)


def _lowering(frame: Frame, op: ir.OpView) -> Callable[[Frame, Any], None] | None:
    return LOWERINGS[frame.target.mma.name].get(type(op))


def _emit_team(frame: Frame, op: WarpsOp) -> None:
    with frame.role(op.first.value, op.warps.value):
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


def _emit_while(frame: Frame, op: scf.WhileOp) -> None:
    results = [result.type for result in op.results]
    copy = scf.WhileOp(results, [frame.values[value] for value in op.operands])
    for region, block in zip(copy.regions, (op.before.blocks[0], op.after.blocks[0]), strict=True):
        made = region.blocks.append(*(argument.type for argument in block.arguments))
        frame.values.update(zip(block.arguments, made.arguments, strict=True))
        with ir.InsertionPoint(made):
            emit_block(frame, block)
            _copy(frame, block.operations[len(block.operations) - 1])
    frame.values.update(zip(op.results, copy.results, strict=True))


def _copy(frame: Frame, op: ir.OpView) -> None:
    clone = op.operation.clone()
    for index, operand in enumerate(op.operation.operands):
        clone.operands[index] = frame.values[operand]
    for old, new in zip(op.operation.results, clone.results, strict=True):
        frame.values[old] = new


# Those that passes before this one place; they stay as they are.
INSTRUCTIONS = (
    sm.ArriveExpectTxOp,
    sm.ArriveOp,
    sm.AwaitGridsOp,
    sm.BarrierInitOp,
    sm.BulkCommitOp,
    sm.BulkWaitOp,
    sm.ClusterBarrierOp,
    sm.CommitOp,
    sm.CpAsyncWaitOp,
    sm.CtaBarrierOp,
    sm.ExpectTxOp,
    sm.FenceOp,
    sm.LaunchDependentsOp,
    sm.MapaOp,
    sm.NamedBarrierOp,
    sm.QueryCancelOp,
    sm.SharedAddressOp,
    sm.SpecialRegisterOp,
    sm.TmemAllocOp,
    sm.TmemDeallocOp,
    sm.TmemRelinquishOp,
    sm.TryCancelOp,
    sm.WaitBarrierOp,
    sm.WgmmaWaitOp,
    llvm.LoadOp,
)


def _lower_handle(frame: Frame, op: ir.OpView) -> None:
    """A compile-time handle, which the plan knows, or the prologue, which has been emitted."""


HANDLES = (
    PrologueOp,
    TensorMapOp,
    AccumulatorOp,
    sm.LeaderBarrierOp,
    sm.PositionOp,
    sm.TallyOp,
    *get_args(MEMORY_OPS),
)
Lowerings = dict[type, Callable[[Frame, Any], None]]
_TCGEN05: Lowerings = {
    CtaTileOp: lower_cta_tile,
    PlaceOp: lower_place,
    ThreadOp: lower_thread,
    ClearUnitOp: lower_clear_unit,
    ThreadLanesOp: lower_thread_lanes,
    ThreadRowOp: lower_thread_row,
    ThreadColumnOp: lower_thread_column,
    ReadRowOp: lower_read_row,
    WriteRowOp: lower_write_row,
    WritePartialOp: lower_write_partial,
    PartialOp: lower_partial,
    **dict.fromkeys(HANDLES, _lower_handle),
    CopyOp: lower_copy,
    LoadBoxesOp: lower_load_boxes,
    MulticastBoxesOp: lower_multicast_boxes,
    PairRankOp: lower_pair_rank,
    SplitRankOp: lower_split_rank,
    PairMmaOp: lower_mma,
    TileOp: lower_tile,
    sm.ReadPositionOp: lower_read_position,
    sm.AdvancePositionOp: lower_advance_position,
    sm.ReadTallyOp: lower_read_tally,
    sm.WriteTallyOp: lower_write_tally,
    sm.BarrierOp: lower_barrier,
    sm.SlotOp: lower_slot,
    sm.SlotAddressOp: lower_slot_address,
    sm.CtaMaskOp: lower_cta_mask,
    sm.PrefetchTensorMapOp: lower_prefetch,
    sm.TmemBaseOp: lower_tmem_base,
    sm.LeaderRankOp: lower_leader_rank,
    sm.CpAsyncCommitOp: lower_cp_async_commit,
    MmaOp: lower_mma,
    AwaitSumsOp: await_sums,
    WritePieceOp: write_piece,
    TmaStoreOp: lower_tma_store,
}
TENSOR_MEMORY_ONLY = (PairMmaOp, PairRankOp, ThreadLanesOp, ReadRowOp, sm.TmemBaseOp)
_WGMMA: Lowerings = {
    **{op: lower for op, lower in _TCGEN05.items() if op not in TENSOR_MEMORY_ONLY},
    MmaOp: lower_wgmma,
    SetRegistersOp: lower_set_registers,
    ThreadRowOp: lower_held_row,
    ThreadColumnOp: lower_held_column,
    ReadRowsOp: lower_read_rows,
    AwaitSumsOp: await_registers,
    WritePieceOp: write_registers,
}
LOWERINGS = {"tcgen05.mma": _TCGEN05, "wgmma.mma_async": _WGMMA, "mma.sync": {}}

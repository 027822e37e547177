"""The lowering of each op of `tile`, `pipe` and `sm`: one table per unit of `dialects.mma_units`.

The unit decides where accumulators are (tensor memory or registers), so most ops of MMAs and
stores are lowered differently. The tables extend each other: `_WGMMA` is `_TCGEN05` without what
needs tensor memory, and so on. `LOWERINGS` has the table of each unit by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from ...dialects import sm
from ...dialects.mlir import ir, memref
from ...dialects.pipe import SetRegistersOp, TileOp
from ...dialects.sm.ring_memory import MEMORY_OPS
from ...dialects.sm.threads import ConvergeOp
from ...dialects.tile import (
    AccumulatorOp,
    CopyOp,
    CtaTileOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    RotatedStepOp,
    SplitRankOp,
    SplitStartOp,
    TensorMapOp,
)
from ...dialects.tile.blockwise import BLOCKWISE_MMAS, BlockwiseMmaOp
from ...dialects.tile.boxes import (
    BoxRowsOp,
    GatherBoxesOp,
    LoadBoxesOp,
    MulticastBoxesOp,
    PrefetchBoxesOp,
)
from ...dialects.tile.duals import DUAL_MMAS, DualMmaOp, DualPairMmaOp, JoinOp
from ...dialects.tile.edges import EdgeBoxesOp, EdgeBoxRowsOp, EdgeMulticastBoxesOp, EdgeRowsOp
from ...dialects.tile.grouped_products import GroupAtomsOp, GroupScalesOp
from ...dialects.tile.groups import (
    GatheredRowsOp,
    GroupAtOp,
    GroupColumnsOp,
    GroupDepthOp,
    GroupRowsOp,
    GroupStartsOp,
    GroupStepsOp,
)
from ...dialects.tile.level import LevelBoxesOp, LevelRowsOp, NarrowMmaOp, TakeColumnsOp
from ...dialects.tile.loads import CopyTogetherOp
from ...dialects.tile.marks import MarkOp
from ...dialects.tile.parts import WorkspaceOp
from ...dialects.tile.pieces import ReadFragmentOp
from ...dialects.tile.place import CountedPlaceOp, GroupPlaceOp, PlaceOp, TileCountOp
from ...dialects.tile.quantized import BlockScaleOp, WriteCodesOp, WriteScalesOp
from ...dialects.tile.scales import SCALED_MMAS, ScaledMmaOp
from ...dialects.tile.short import SHORT_ALONE, SHORT_MMAS, SHORT_PAIRS
from ...dialects.tile.stores import AwaitSumsOp
from ...dialects.tile.sums import (
    AddLanesOp,
    ClearSumsOp,
    DualLaneMmaOp,
    FinishSumsOp,
    HasSumsOp,
    LaneMmaOp,
    SumsPlaceOp,
    SumsRowOp,
    ViewMmaOp,
)
from ...dialects.tile.threads import (
    ClearUnitOp,
    ReadMatricesOp,
    ReadRowOp,
    ThreadLanesOp,
)
from ...dialects.tile.weights import ExchangedWeightMmaOp, WeightMmaOp
from .copies.boxes import (
    lower_edge_boxes,
    lower_edge_multicast_boxes,
    lower_gather_boxes,
    lower_level_boxes,
    lower_load_boxes,
    lower_multicast_boxes,
    lower_prefetch_boxes,
)
from .copies.clearing import lower_clear_unit
from .copies.copies import lower_copy
from .copies.shifted_copies import lower_copy_together
from .epilogue.fragment_reads import (
    await_registers,
    await_sums,
    read_registers,
    read_tensor_memory,
    read_warp,
)
from .epilogue.marks import lower_mark
from .epilogue.pieces import PIECES
from .epilogue.quantized import lower_block_scale, lower_write_codes, lower_write_scales
from .epilogue.rows import HELD_ROWS, ROWS
from .fma.lanes import lower_lane_fma
from .fma.mma import lower_fma
from .fma.sums import (
    hold_sums,
    lower_add_lanes,
    lower_clear_sums,
    lower_has_sums,
    lower_sums_place,
    lower_sums_row,
)
from .fma.views import lower_view_fma
from .mma_sync.mma import LOWERINGS as FRAGMENTS
from .mma_sync.scaled import lower_scaled_mma_sync
from .mma_sync.weights import lower_weight_mma
from .operands.mma_operands import lower_base_descriptor, lower_operand
from .registers.elements import join
from .scope.positions import (
    lower_advance_position,
    lower_barrier,
    lower_cta_mask,
    lower_leader_rank,
    lower_position,
    lower_prefetch,
    lower_read_position,
    lower_read_tally,
    lower_slot_address,
    lower_tally,
    lower_tile,
    lower_tmem_base,
    lower_warpgroup_position,
    lower_write_tally,
)
from .scope.scope import Scope
from .tcgen05.added import finish_added, hold_separate_sums, lower_added_mma
from .tcgen05.mma import lower_mma, lower_short_mma
from .tcgen05.scaled import lower_scaled_mma
from .tcgen05.split import LOWERINGS as SPLIT_TCGEN05
from .tcgen05.weights import (
    finish_widened,
    hold_widened_sums,
    lower_grouped_weight_tcgen05,
    lower_weight_tcgen05,
)
from .tiles.groups import (
    lower_gathered_rows,
    lower_group_at,
    lower_group_atoms,
    lower_group_columns,
    lower_group_depth,
    lower_group_place,
    lower_group_rows,
    lower_group_scales,
    lower_group_starts,
    lower_group_steps,
)
from .tiles.stacks import BATCHES
from .tiles.tiles import (
    lower_box_rows,
    lower_cta_tile,
    lower_dim,
    lower_edge_box_rows,
    lower_edge_rows,
    lower_level_rows,
    lower_pair_rank,
    lower_place,
    lower_rotated_step,
    lower_split_rank,
    lower_split_start,
    lower_tile_count,
)
from .wgmma.added import await_added, hold_added_sums, lower_added_wgmma, lower_blockwise_wgmma
from .wgmma.level import lower_narrow_wgmma, lower_take_columns
from .wgmma.mma import hold_registers, lower_set_registers, lower_wgmma
from .wgmma.short import lower_short_wgmma
from .wgmma.split import LOWERINGS as SPLIT_WGMMA
from .wgmma.weights import lower_grouped_weight_wgmma, lower_weight_wgmma

Lowerings = dict[type, Callable[[Scope, Any], Any]]


# Ops that are single instructions already; they are kept.
INSTRUCTIONS = {
    sm.ArriveExpectTxOp,
    sm.ArriveExpectMoreOp,
    sm.ArriveOp,
    sm.AwaitGridsOp,
    sm.AwaitTurnOp,
    sm.GiveTurnOp,
    sm.BarrierInitOp,
    sm.BulkCommitOp,
    sm.BulkWaitOp,
    ConvergeOp,
    sm.ClusterBarrierOp,
    sm.CommitOp,
    sm.CpAsyncCommitOp,
    sm.CpAsyncWaitOp,
    sm.CtaBarrierOp,
    sm.ExpectTxOp,
    sm.ExpectMoreOp,
    sm.FenceOp,
    sm.LaunchDependentsOp,
    sm.MapaOp,
    sm.NamedBarrierOp,
    sm.PartBarrierOp,
    sm.AnyBarrierOp,
    sm.AnyPartBarrierOp,
    sm.ClaimPartsOp,
    sm.CountArrivalOp,
    sm.NarrowOp,
    sm.QueryCancelOp,
    sm.SharedAddressOp,
    sm.ShuffleOp,
    sm.SpecialRegisterOp,
    sm.TmemAllocOp,
    sm.TmemDeallocOp,
    sm.TmemRelinquishOp,
    sm.TryCancelOp,
    sm.WaitBarrierOp,
    sm.WgmmaWaitOp,
}


def _lower_handle(_: Scope, __: ir.OpView) -> None:
    """A compile-time handle, which the plan knows."""


HANDLES = (
    TensorMapOp,
    WorkspaceOp,
    AccumulatorOp,
    sm.LeaderBarrierOp,
    sm.SlotOp,
    *get_args(MEMORY_OPS),
)
_TCGEN05: Lowerings = {
    CtaTileOp: lower_cta_tile,
    PlaceOp: lower_place,
    CountedPlaceOp: lower_place,
    TileCountOp: lower_tile_count,
    BoxRowsOp: lower_box_rows,
    memref.DimOp: lower_dim,
    **BATCHES,
    GroupAtOp: lower_group_at,
    GroupPlaceOp: lower_group_place,
    GroupStartsOp: lower_group_starts,
    GroupRowsOp: lower_group_rows,
    GatheredRowsOp: lower_gathered_rows,
    GroupAtomsOp: lower_group_atoms,
    GroupScalesOp: lower_group_scales,
    GroupDepthOp: lower_group_depth,
    GroupColumnsOp: lower_group_columns,
    GroupStepsOp: lower_group_steps,
    ClearUnitOp: lower_clear_unit,
    **ROWS,
    BlockScaleOp: lower_block_scale,
    WriteCodesOp: lower_write_codes,
    WriteScalesOp: lower_write_scales,
    **dict.fromkeys(HANDLES, _lower_handle),
    CopyOp: lower_copy,
    CopyTogetherOp: lower_copy_together,
    LoadBoxesOp: lower_load_boxes,
    LevelBoxesOp: lower_level_boxes,
    LevelRowsOp: lower_level_rows,
    EdgeRowsOp: lower_edge_rows,
    EdgeBoxRowsOp: lower_edge_box_rows,
    EdgeBoxesOp: lower_edge_boxes,
    EdgeMulticastBoxesOp: lower_edge_multicast_boxes,
    GatherBoxesOp: lower_gather_boxes,
    MulticastBoxesOp: lower_multicast_boxes,
    PrefetchBoxesOp: lower_prefetch_boxes,
    PairRankOp: lower_pair_rank,
    SplitRankOp: lower_split_rank,
    SplitStartOp: lower_split_start,
    RotatedStepOp: lower_rotated_step,
    sm.PositionOp: lower_position,
    sm.WarpgroupPositionOp: lower_warpgroup_position,
    sm.TallyOp: lower_tally,
    TileOp: lower_tile,
    sm.BaseDescriptorOp: lower_base_descriptor,
    sm.OperandOp: lower_operand,
    sm.ReadPositionOp: lower_read_position,
    sm.AdvancePositionOp: lower_advance_position,
    sm.ReadTallyOp: lower_read_tally,
    sm.WriteTallyOp: lower_write_tally,
    sm.BarrierOp: lower_barrier,
    sm.SlotAddressOp: lower_slot_address,
    sm.CtaMaskOp: lower_cta_mask,
    sm.PrefetchTensorMapOp: lower_prefetch,
    sm.TmemBaseOp: lower_tmem_base,
    sm.LeaderRankOp: lower_leader_rank,
    **dict.fromkeys((MmaOp, PairMmaOp, *DUAL_MMAS), lower_mma),
    **dict.fromkeys(SHORT_MMAS, lower_short_mma),
    JoinOp: join,
    **dict.fromkeys(SCALED_MMAS, lower_scaled_mma),
    AwaitSumsOp: await_sums,
    ReadFragmentOp: read_tensor_memory,
    **PIECES,
    MarkOp: lower_mark,
}
TENSOR_MEMORY_ONLY = (
    PairMmaOp,
    *DUAL_MMAS,
    *SHORT_PAIRS,
    PairRankOp,
    ThreadLanesOp,
    ReadRowOp,
    ReadMatricesOp,
    ReadFragmentOp,
    sm.TmemBaseOp,
)
_WGMMA: Lowerings = {
    **{op: lower for op, lower in _TCGEN05.items() if op not in TENSOR_MEMORY_ONLY},
    AccumulatorOp: hold_registers,
    MmaOp: lower_wgmma,
    DualMmaOp: lower_wgmma,
    **dict.fromkeys(SHORT_ALONE, lower_short_wgmma),
    NarrowMmaOp: lower_narrow_wgmma,
    TakeColumnsOp: lower_take_columns,
    SetRegistersOp: lower_set_registers,
    **HELD_ROWS,
    AwaitSumsOp: await_registers,
    ReadFragmentOp: read_registers,
}
_WGMMA_ADDED: Lowerings = {
    **_WGMMA,
    AccumulatorOp: hold_added_sums,
    AwaitSumsOp: await_added,
    MmaOp: lower_added_wgmma,
    DualMmaOp: lower_added_wgmma,
    BlockwiseMmaOp: lower_blockwise_wgmma,
}
_TCGEN05_ADDED: Lowerings = {
    **_WGMMA,
    sm.TmemBaseOp: lower_tmem_base,
    AccumulatorOp: hold_separate_sums,
    AwaitSumsOp: await_added,
    MmaOp: lower_added_mma,
    DualMmaOp: lower_added_mma,
    **dict.fromkeys((PairMmaOp, DualPairMmaOp, *BLOCKWISE_MMAS), lower_added_mma),
    PairRankOp: lower_pair_rank,
    FinishSumsOp: finish_added,
}
_TCGEN05_WIDENED: Lowerings = {
    **_TCGEN05_ADDED,
    AccumulatorOp: hold_widened_sums,
    AwaitSumsOp: await_registers,
    FinishSumsOp: finish_widened,
    ExchangedWeightMmaOp: lower_weight_tcgen05,
}
_FMA: Lowerings = {
    **{op: lower for op, lower in _TCGEN05.items() if op not in TENSOR_MEMORY_ONLY},
    AccumulatorOp: hold_sums,
    MmaOp: lower_fma,
    ViewMmaOp: lower_view_fma,
    LaneMmaOp: lower_lane_fma,
    DualLaneMmaOp: lower_lane_fma,
    AddLanesOp: lower_add_lanes,
    ClearSumsOp: lower_clear_sums,
    SumsPlaceOp: lower_sums_place,
    HasSumsOp: lower_has_sums,
    SumsRowOp: lower_sums_row,
}
_MMA_SYNC: Lowerings = {
    **_WGMMA,
    **FRAGMENTS,
    ScaledMmaOp: lower_scaled_mma_sync,
    WeightMmaOp: lower_weight_mma,
    ReadFragmentOp: read_warp,
}
# "+fma": threads accumulate the products of MMAs in f32; "+cvt": threads convert narrow weights;
# "+3xtf32", "+bf16x9": threads split f32 into terms; "+wide": more accumulators per thread.
LOWERINGS = {
    "tcgen05.mma": _TCGEN05,
    "tcgen05.mma+fma": _TCGEN05_ADDED,
    "tcgen05.mma+cvt": _TCGEN05_WIDENED,
    "tcgen05.mma+cvt+fma": {
        **_TCGEN05_WIDENED,
        ExchangedWeightMmaOp: lower_grouped_weight_tcgen05,
    },
    "tcgen05.mma+bf16x9": {**_TCGEN05_ADDED, **SPLIT_TCGEN05},
    "tcgen05.mma+3xtf32": {**_TCGEN05_ADDED, **SPLIT_TCGEN05},
    "wgmma.mma_async": _WGMMA,
    "wgmma.mma_async+wide": _WGMMA,
    "wgmma.mma_async+fma": _WGMMA_ADDED,
    "wgmma.mma_async+bf16x9": {**_WGMMA_ADDED, **SPLIT_WGMMA},
    "wgmma.mma_async+cvt": {**_WGMMA, ExchangedWeightMmaOp: lower_weight_wgmma},
    "wgmma.mma_async+cvt+fma": {**_WGMMA_ADDED, ExchangedWeightMmaOp: lower_grouped_weight_wgmma},
    "mma.sync": _MMA_SYNC,
    "mma.sync+3xtf32": _MMA_SYNC,
    "mma.sync+bf16x9": _MMA_SYNC,
    "fma": _FMA,
}

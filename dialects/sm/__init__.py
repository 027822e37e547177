"""The `sm` dialect: what the hardware of one streaming multiprocessor is asked to do for a CTA.

    sm.kernel             the program that every thread of a CTA runs
    sm.warps              the part of the program that some warps of the CTA run, a team
    sm.prologue           what all threads of the CTA do first
    sm.first_warp         what all lanes of its first warp do
    sm.team               which thread of its team this is, its lane, and whether it leads
    sm.cta_place          which CTA of its cluster this is
    sm.run                what one elected lane of a team, or of each of its warps, runs alone
    sm.converge           the lanes of each warp wait for each other
    sm.shared_memory      what the CTA takes of it; sm.tensor_memory likewise
    sm.slot_memory        where the slots of a ring lie; sm.tile_memory a tile of no ring
    sm.scale_columns      where the block scales of a K step are in tensor memory
    sm.terms              where threads write the bf16 terms of f32 tiles
    sm.columns            where accumulators lie in tensor memory
    sm.product_columns    where products lie there that threads add or read
    sm.weight_columns     where weights lie there that threads have widened
    sm.barriers           mbarriers of a ring, and the arrivals that end their phases
    sm.ring               the ring with that memory and those; sm.turns, sm.staging without one
    sm.copy_ring          a ring that the threads which read it fill by their own copies

    sm.position           where a thread is in a ring; sm.read_position, sm.advance_position
    sm.tally              a number that a thread keeps; sm.read_tally, sm.write_tally
    sm.barrier            the mbarrier of a slot; sm.slot the slot itself, sm.slot_address its bytes
    sm.cta_mask           ranks of CTAs in the cluster; sm.leader_rank that of the leader CTA
    sm.each_rank          what lanes run for a rank of a mask each

    sm.special_register   what a thread is told of itself
    sm.elect              one lane of the warp
    sm.shuffle            the value of another lane; sm.shuffle_up that before, sm.shuffle_from any
    sm.ballot             which lanes a flag holds in
    sm.set_registers      more or fewer registers for the threads of a warpgroup
    sm.shared_address     a byte of shared memory; sm.mapa in another CTA of the cluster
    sm.leader_barrier     a barrier of the pair's leader CTA
    sm.table              constants in global memory
    sm.approximate        an approximate function of f32
    sm.pin                registers that an asynchronous instruction writes, once it is done;
                          sm.keep copies of those that it may read

    sm.barrier_init       an mbarrier and the arrivals that end its phases
    sm.wait_barrier       waits for the phase of a parity
    sm.arrive             one arrival; sm.expect_tx bytes to come, sm.arrive_expect_tx both;
                          sm.expect_more and sm.arrive_expect_more of a number that a launch says
    sm.fence              orders what this thread did in one way with what follows in another
    sm.named_barrier      some warps meet; sm.cta_barrier and sm.cluster_barrier all threads
    sm.part_barrier       some of a team's warps meet by themselves, each part of it at its own
    sm.any_barrier        some warps meet, and learn whether a flag holds in one of their threads
    sm.any_part_barrier   the same for a part of a team's warps
    sm.claim_parts        counts a thread in global memory, and shares out what all have brought
    sm.count_arrival      counts a thread in global memory, and says who comes last
    sm.await_grids        waits for the grids before; sm.launch_dependents lets those after start

    sm.tma_load           a box of a tensor into shared memory; sm.tma_store out of it
    sm.bulk_commit        a group of TMA stores; sm.bulk_wait waits for groups to have been read
    sm.cp_async           a thread's copy; sm.cp_async_commit and sm.cp_async_wait as above
    sm.load_once          16 bytes of global memory that L1 does not keep
    sm.stmatrix           8x8 matrices from a warp's registers into shared memory
    sm.try_cancel         asks launch control for a cluster; sm.query_cancel reads the answer
    sm.prefetch_tensor_map  fetches a tensor map; sm.prefetch_box asks L2 for a box of a tensor

    sm.base_descriptor    a tile of a ring's first slot as an MMA is told of it; sm.operand of any
    sm.smem_descriptor    a matrix in shared memory; sm.advance the same further on
    sm.mma                d[m,n] += a[m,k] * b[n,k]^T in tensor memory; sm.commit arrives after it
    sm.scaling_mma        the same of d divided by a power of two
    sm.wgmma              the same in registers; sm.wgmma_fence, _commit and _wait go with it
    sm.wgmma_of_registers  the same with A in registers, too
    sm.ldmatrix           8x8 matrices of shared memory into a warp's registers
    sm.ldmatrix_padded    8x16 matrices of elements of 4 or 6 bits, which become bytes
    sm.mma_sync           sum[16,8] = d + a[16,k] * b[8,k]^T in registers, by a warp
    sm.scaled_mma_sync    the same of operands with block scales
    sm.scaled_mma         in tensor memory, of such operands; sm.tmem_copy brings scales there
    sm.tmem_alloc         takes tensor memory; sm.tmem_relinquish, sm.tmem_dealloc
    sm.tmem_base          where what was taken begins
    sm.tmem_load          tensor memory into registers; sm.tmem_wait when they are there
    sm.tmem_store         registers into tensor memory; sm.tmem_store_wait when they are there
    sm.mma_of_tensor_memory  as sm.mma, with A in tensor memory

An op is one instruction, or a word that instructions take, with every field by its name in the PTX
ISA. Around them stand scf, arith, vector and llvm's loads and stores.
"""

from .barriers import (
    AnyBarrierOp,
    AnyPartBarrierOp,
    ArriveExpectMoreOp,
    ArriveExpectTxOp,
    ArriveOp,
    AwaitGridsOp,
    AwaitTurnOp,
    BarrierInitOp,
    ClaimPartsOp,
    ClusterBarrierOp,
    CountArrivalOp,
    CtaBarrierOp,
    ExpectMoreOp,
    ExpectTxOp,
    FenceOp,
    GiveTurnOp,
    LaunchDependentsOp,
    NamedBarrierOp,
    PartBarrierOp,
    WaitBarrierOp,
)
from .copies import (
    BulkCommitOp,
    BulkWaitOp,
    CpAsyncCommitOp,
    CpAsyncOp,
    CpAsyncWaitOp,
    LoadOnceOp,
    PrefetchBoxOp,
    PrefetchTensorMapOp,
    QueryCancelOp,
    StmatrixOp,
    StmatrixTransposedOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaStoreOp,
    TryCancelOp,
)
from .fragments import CutBf16Op, LdmatrixOp, LdmatrixPaddedOp, MmaSyncOp, RoundTf32Op, WidenOp
from .lanes import BallotOp, ShuffleFromOp, ShuffleOp, ShuffleUpOp
from .memory import (
    BarriersOp,
    ColumnsOp,
    ProductColumnsOp,
    ScaleColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TermsOp,
    TileMemoryOp,
    WeightColumnsOp,
)
from .positions import (
    AdvancePositionOp,
    BarrierOp,
    CtaMaskOp,
    EachRankOp,
    LeaderRankOp,
    PositionOp,
    PositionType,
    ReadPositionOp,
    ReadTallyOp,
    SlotAddressOp,
    SlotOp,
    TallyOp,
    TallyType,
    WarpgroupPositionOp,
    WriteTallyOp,
)
from .program import (
    ApproximateOp,
    ElectOp,
    KeepOp,
    KernelOp,
    LeaderBarrierOp,
    MapaOp,
    NarrowOp,
    PinOp,
    ResidentOp,
    SetRegistersOp,
    SharedAddressOp,
    SpecialRegisterOp,
    TableOp,
)
from .ring_memory import AheadRingOp, CopyRingOp, ReusedRingOp, RingOp, StagingOp, TurnsOp
from .scales import ScaledMmaOp, ScaledMmaSyncOp, TmemCopyOp
from .tensor_core import (
    AdvanceOp,
    BaseDescriptorOp,
    CommitOp,
    MmaOp,
    OperandOp,
    ScalingMmaOp,
    SmemDescriptorOp,
    TmemAllocOp,
    TmemBaseOp,
    TmemDeallocOp,
    TmemLoadOp,
    TmemRelinquishOp,
    TmemWaitOp,
    WgmmaCommitOp,
    WgmmaFenceOp,
    WgmmaOfRegistersOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from .threads import ConvergeOp, CtaPlaceOp, FirstWarpOp, PrologueOp, RunOp, TeamOp, WarpsOp
from .types import DescriptorType, Sm
from .widened import MmaOfTensorMemoryOp, TmemStoreOp, TmemStoreWaitOp

__all__ = [
    "AdvanceOp",
    "AdvancePositionOp",
    "AheadRingOp",
    "AnyBarrierOp",
    "AnyPartBarrierOp",
    "ApproximateOp",
    "ArriveExpectMoreOp",
    "ArriveExpectTxOp",
    "ArriveOp",
    "AwaitGridsOp",
    "AwaitTurnOp",
    "BallotOp",
    "BarrierInitOp",
    "BarrierOp",
    "BarriersOp",
    "BaseDescriptorOp",
    "BulkCommitOp",
    "BulkWaitOp",
    "ClaimPartsOp",
    "ClusterBarrierOp",
    "ColumnsOp",
    "CommitOp",
    "ConvergeOp",
    "CopyRingOp",
    "CountArrivalOp",
    "CpAsyncCommitOp",
    "CpAsyncOp",
    "CpAsyncWaitOp",
    "CtaBarrierOp",
    "CtaMaskOp",
    "CtaPlaceOp",
    "CutBf16Op",
    "DescriptorType",
    "EachRankOp",
    "ElectOp",
    "ExpectMoreOp",
    "ExpectTxOp",
    "FenceOp",
    "FirstWarpOp",
    "GiveTurnOp",
    "KeepOp",
    "KernelOp",
    "LaunchDependentsOp",
    "LdmatrixOp",
    "LdmatrixPaddedOp",
    "LeaderBarrierOp",
    "LeaderRankOp",
    "LoadOnceOp",
    "MapaOp",
    "MmaOfTensorMemoryOp",
    "MmaOp",
    "MmaSyncOp",
    "NamedBarrierOp",
    "NarrowOp",
    "OperandOp",
    "PartBarrierOp",
    "PinOp",
    "PositionOp",
    "PositionType",
    "PrefetchBoxOp",
    "PrefetchTensorMapOp",
    "ProductColumnsOp",
    "PrologueOp",
    "QueryCancelOp",
    "ReadPositionOp",
    "ReadTallyOp",
    "ResidentOp",
    "ReusedRingOp",
    "RingOp",
    "RoundTf32Op",
    "RunOp",
    "ScaleColumnsOp",
    "ScaledMmaOp",
    "ScaledMmaSyncOp",
    "ScalingMmaOp",
    "SetRegistersOp",
    "SharedAddressOp",
    "SharedMemoryOp",
    "ShuffleFromOp",
    "ShuffleOp",
    "ShuffleUpOp",
    "SlotAddressOp",
    "SlotMemoryOp",
    "SlotOp",
    "Sm",
    "SmemDescriptorOp",
    "SpecialRegisterOp",
    "StagingOp",
    "StmatrixOp",
    "StmatrixTransposedOp",
    "TableOp",
    "TallyOp",
    "TallyType",
    "TeamOp",
    "TensorMemoryOp",
    "TermsOp",
    "TileMemoryOp",
    "TmaGatherOp",
    "TmaLoadOp",
    "TmaStoreOp",
    "TmemAllocOp",
    "TmemBaseOp",
    "TmemCopyOp",
    "TmemDeallocOp",
    "TmemLoadOp",
    "TmemRelinquishOp",
    "TmemStoreOp",
    "TmemStoreWaitOp",
    "TmemWaitOp",
    "TryCancelOp",
    "TurnsOp",
    "WaitBarrierOp",
    "WarpgroupPositionOp",
    "WarpsOp",
    "WeightColumnsOp",
    "WgmmaCommitOp",
    "WgmmaFenceOp",
    "WgmmaOfRegistersOp",
    "WgmmaOp",
    "WgmmaWaitOp",
    "WidenOp",
    "WriteTallyOp",
]

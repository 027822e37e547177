"""c[M,N] = a[M,K] · b[N,K]ᵀ in bf16: a TMA warp and two warpgroups of wgmma around a pipeline of
three stages; the clusters of two CTAs share the tile of b by multicast."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import LayoutEnum, SmemAllocator, hopper_helpers

TYPE = cutlass.BFloat16
M, N, K = 256, 192, 256
TILE = TILE_M, TILE_N, DEPTH = 128, 96, 64
STAGES, CLUSTER, WARPS = 3, 2, 8
STAGE_BYTES = (TILE_M + TILE_N) * DEPTH * 2


@cute.kernel
def wgmma_pipeline(
    tma_a: cute.CopyAtom,
    a: cute.Tensor,
    tma_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    shared = SmemAllocator()
    barriers = shared.allocate_array(cutlass.Int64, 2 * STAGES)
    stages_a = shared.allocate_tensor(TYPE, layout_a.outer, 1024, layout_a.inner)
    stages_b = shared.allocate_tensor(TYPE, layout_b.outer, 1024, layout_b.inner)
    cluster = cute.make_layout((1, CLUSTER, 1, 1))
    ring = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CLUSTER * WARPS),
        tx_count=STAGE_BYTES,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        mcast_mode_mn=(0, 1),
    )
    tiles_a = cute.local_tile(a, (TILE_M, DEPTH), (row, None))
    tiles_b = cute.local_tile(b, (TILE_N, DEPTH), (column, None))
    to_a, from_a = cpasync.tma_partition(
        tma_a,
        0,
        cute.make_layout(1),
        cute.group_modes(stages_a, 0, 2),
        cute.group_modes(tiles_a, 0, 2),
    )
    to_b, from_b = cpasync.tma_partition(
        tma_b,
        rank,
        cute.make_layout(CLUSTER),
        cute.group_modes(stages_b, 0, 2),
        cute.group_modes(tiles_b, 0, 2),
    )
    steps = cute.size(tiles_a, mode=[2])

    if warp == WARPS:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for step in cutlass.range(steps):
            ring.producer_acquire(state)
            barrier = ring.producer_get_barrier(state)
            cute.copy(tma_a, from_a[None, step], to_a[None, state.index], tma_bar_ptr=barrier)
            cute.copy(
                tma_b,
                from_b[None, step],
                to_b[None, state.index],
                tma_bar_ptr=barrier,
                mcast_mask=cutlass.Int16((1 << CLUSTER) - 1),
            )
            ring.producer_commit(state)
            state.advance()
        ring.producer_tail(state)

    if warp < WARPS:
        part = mma.get_slice(thread)
        matrix_a = mma.make_fragment_A(part.partition_A(stages_a))
        matrix_b = mma.make_fragment_B(part.partition_B(stages_b))
        out = part.partition_C(cute.local_tile(c, (TILE_M, TILE_N), (row, column)))
        total = mma.make_fragment_C(out.shape)
        total.fill(0.0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for _ in cutlass.range(steps):
            ring.consumer_wait(state)
            warpgroup.fence()
            for k in cutlass.range_constexpr(DEPTH // 16):
                at = (None, None, k, state.index)
                cute.gemm(mma, total, matrix_a[at], matrix_b[at], total)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            ring.consumer_release(state)
            state.advance()
        rounded = cute.make_rmem_tensor(total.shape, c.element_type)
        rounded.store(total.load().to(c.element_type))
        cute.autovec_copy(rounded, out)


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = hopper_helpers.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        OperandMajorMode.K,
        OperandMajorMode.K,
        cutlass.Float32,
        (2, 1, 1),
        (64, TILE_N),
    )
    rows = LayoutEnum.ROW_MAJOR
    layout_a = hopper_helpers.make_smem_layout_a(rows, TILE, a.element_type, STAGES)
    layout_b = hopper_helpers.make_smem_layout_b(rows, TILE, b.element_type, STAGES)
    one_a, one_b = (cute.slice_(each, (None, None, 0)) for each in (layout_a, layout_b))
    tma_a, coordinates_a = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), a, one_a, (TILE_M, DEPTH)
    )
    tma_b, coordinates_b = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SMulticastOp(), b, one_b, (TILE_N, DEPTH), CLUSTER
    )
    wgmma_pipeline(tma_a, coordinates_a, tma_b, coordinates_b, c, mma, layout_a, layout_b).launch(
        grid=[M // TILE_M, N // TILE_N, 1],
        block=[32 * (WARPS + 1), 1, 1],
        cluster=[CLUSTER, 1, 1],
    )


def matrix(rows, columns):
    return make_fake_compact_tensor(TYPE, (rows, columns), stride_order=(1, 0), assumed_align=16)


ARGUMENTS = (matrix(M, K), matrix(N, K), matrix(M, N))

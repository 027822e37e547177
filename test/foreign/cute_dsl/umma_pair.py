"""c[M,N] = a[M,K] · b[N,K]ᵀ, bf16 to f32, by pairs of CTAs: one tcgen05 instruction multiplies for
both, each of the two copies its half of the rows through shared memory and stores it by TMA."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import LayoutEnum, SmemAllocator, TmemAllocator, blackwell_helpers

TYPE = cutlass.BFloat16
M, N, K = 256, 128, 256
TILE = TILE_M, TILE_N, DEPTH = 256, 64, 64
STAGES, MMA_WARP, TMA_WARP, THREADS = 3, 4, 5, 192
PIECE = 128, 32
STAGE_BYTES = (TILE_M + TILE_N) * DEPTH * 2


@cute.kernel
def umma_pair(
    tma_a: cute.CopyAtom,
    a: cute.Tensor,
    tma_b: cute.CopyAtom,
    b: cute.Tensor,
    tma_c: cute.CopyAtom,
    c: cute.Tensor,
    mma: cute.TiledMma,
    cluster: cute.Layout,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    layout_c: cute.ComposedLayout,
):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    half, row = row % 2, row // 2
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    shared = SmemAllocator()
    load_barriers = shared.allocate_array(cutlass.Int64, 2 * STAGES)
    done_barriers = shared.allocate_array(cutlass.Int64, 2)
    freed = shared.allocate_array(cutlass.Int64, 1)
    slot = shared.allocate_array(cutlass.Int32, 1)
    stages_a = shared.allocate_tensor(TYPE, layout_a.outer, 1024, layout_a.inner)
    stages_b = shared.allocate_tensor(TYPE, layout_b.outer, 1024, layout_b.inner)
    staged = shared.allocate_tensor(cutlass.Float32, layout_c.outer, 1024, layout_c.inner)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    load = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=STAGE_BYTES,
        barrier_storage=load_barriers,
        cta_layout_vmnk=cluster,
    )
    done = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 256),
        barrier_storage=done_barriers,
        cta_layout_vmnk=cluster,
    )
    memory = TmemAllocator(
        slot,
        barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=160),
        is_two_cta=True,
        two_cta_tmem_dealloc_mbar_ptr=freed,
    )
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    part = mma.get_slice(half)
    tiles_a = part.partition_A(cute.local_tile(a, (TILE_M, DEPTH), (row, None)))
    tiles_b = part.partition_B(cute.local_tile(b, (TILE_N, DEPTH), (column, None)))
    out = part.partition_C(cute.local_tile(c, (TILE_M, TILE_N), (row, column)))
    to_a, from_a = cpasync.tma_partition(
        tma_a,
        0,
        cute.make_layout(1),
        cute.group_modes(stages_a, 0, 3),
        cute.group_modes(tiles_a, 0, 3),
    )
    to_b, from_b = cpasync.tma_partition(
        tma_b,
        0,
        cute.make_layout(1),
        cute.group_modes(stages_b, 0, 3),
        cute.group_modes(tiles_b, 0, 3),
    )
    shape = mma.make_fragment_C(mma.partition_shape_C((TILE_M, TILE_N)))
    steps = cute.size(from_a, mode=[1])

    if warp == TMA_WARP:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for step in cutlass.range(steps):
            load.producer_acquire(state)
            barrier = load.producer_get_barrier(state)
            cute.copy(tma_a, from_a[None, step], to_a[None, state.index], tma_bar_ptr=barrier)
            cute.copy(tma_b, from_b[None, step], to_b[None, state.index], tma_bar_ptr=barrier)
            state.advance()
        load.producer_tail(state)

    if warp == MMA_WARP:
        memory.wait_for_alloc()
        total = cute.make_tensor(memory.retrieve_ptr(cutlass.Float32), shape.layout)
        if half == 0:
            matrix_a, matrix_b = mma.make_fragment_A(stages_a), mma.make_fragment_B(stages_b)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            done.producer_acquire(ready)
            for step in cutlass.range(steps):
                load.consumer_wait(state)
                for k in cutlass.range_constexpr(DEPTH // 16):
                    mma.set(tcgen05.Field.ACCUMULATE, (step != 0) | (k != 0))
                    at = (None, None, k, state.index)
                    cute.gemm(mma, total, matrix_a[at], matrix_b[at], total)
                load.consumer_release(state)
                state.advance()
            done.producer_commit(ready)
            ready.advance()
            done.producer_tail(ready)

    if warp < MMA_WARP:
        memory.allocate(TILE_N)
        memory.wait_for_alloc()
        pointer = memory.retrieve_ptr(cutlass.Float32)
        whole = cute.make_tensor(pointer, shape.layout)
        atom = cute.make_copy_atom(
            tcgen05.Ld32x32bOp(tcgen05.Repetition.x32, tcgen05.Pack.NONE), cutlass.Float32
        )
        pieces = cute.flat_divide(whole[(None, None), 0, 0], PIECE)
        load_copy = tcgen05.make_tmem_copy(atom, pieces[None, None, 0, 0])
        sources = load_copy.get_slice(thread).partition_S(pieces)
        store_atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
        store_copy = cute.make_tiled_copy_D(store_atom, load_copy)
        mine = store_copy.get_slice(thread)
        targets = mine.partition_D(staged[None, None, 0])
        places = load_copy.get_slice(thread).partition_D(cute.make_identity_tensor(PIECE))
        values = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        boxes = cute.zipped_divide(out[(None, None), 0, 0], PIECE)
        source, target = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(staged[None, None, 0], 0, 2), boxes
        )
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        rows = pipeline.NamedBarrier(barrier_id=2, num_threads=128)
        done.consumer_wait(state)
        for piece in cutlass.range_constexpr(TILE_N // PIECE[1]):
            cute.copy(load_copy, sources[None, None, None, 0, piece], values)
            if warp == 0:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
            rows.arrive_and_wait()
            cute.copy(store_copy, store_copy.retile(values), targets)
            cute.arch.fence_proxy("async.shared", space="cta")
            rows.arrive_and_wait()
            if warp == 0:
                cute.copy(tma_c, source, target[None, piece])
                cute.arch.cp_async_bulk_commit_group()
        if warp == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        done.consumer_release(state)
        memory.relinquish_alloc_permit()
        rows.arrive_and_wait()
        memory.free(pointer)


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = blackwell_helpers.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        OperandMajorMode.K,
        OperandMajorMode.K,
        cutlass.Float32,
        tcgen05.CtaGroup.TWO,
        (TILE_M, TILE_N),
    )
    layout_a = blackwell_helpers.make_smem_layout_a(mma, TILE, a.element_type, STAGES)
    layout_b = blackwell_helpers.make_smem_layout_b(mma, TILE, b.element_type, STAGES)
    layout_c = blackwell_helpers.make_smem_layout_epi(
        c.element_type, LayoutEnum.ROW_MAJOR, PIECE, 1
    )
    one_a, one_b = (cute.slice_(each, (None, None, None, 0)) for each in (layout_a, layout_b))
    cluster = cute.tiled_divide(cute.make_layout((2, 1, 1)), (mma.thr_id.shape,))
    op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.TWO)
    tma_a, coordinates_a = cute.nvgpu.make_tiled_tma_atom_A(op, a, one_a, TILE, mma, cluster.shape)
    tma_b, coordinates_b = cute.nvgpu.make_tiled_tma_atom_B(op, b, one_b, TILE, mma, cluster.shape)
    tma_c, coordinates_c = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), c, cute.select(layout_c, mode=[0, 1]), PIECE
    )
    umma_pair(
        tma_a,
        coordinates_a,
        tma_b,
        coordinates_b,
        tma_c,
        coordinates_c,
        mma,
        cluster,
        layout_a,
        layout_b,
        layout_c,
    ).launch(grid=[M // TILE_M * 2, N // TILE_N, 1], block=[THREADS, 1, 1], cluster=[2, 1, 1])


def matrix(dtype, rows, columns):
    return make_fake_compact_tensor(dtype, (rows, columns), stride_order=(1, 0), assumed_align=16)


ARGUMENTS = (matrix(TYPE, M, K), matrix(TYPE, N, K), matrix(cutlass.Float32, M, N))

"""c[M,N] = a[M,K] · b[N,K]ᵀ, f16 to f32: a TMA warp, a tcgen05 warp and four warps that copy the
accumulator out, around a pipeline of four stages and one of one accumulator."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import SmemAllocator, TmemAllocator, blackwell_helpers

TYPE = cutlass.Float16
M, N, K = 256, 128, 320
TILE = TILE_M, TILE_N, DEPTH = 128, 64, 64
STAGES, MMA_WARP, TMA_WARP, THREADS = 4, 4, 5, 192
STAGE_BYTES = (TILE_M + TILE_N) * DEPTH * 2


@cute.kernel
def umma_pipeline(
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
    shared = SmemAllocator()
    load_barriers = shared.allocate_array(cutlass.Int64, 2 * STAGES)
    done_barriers = shared.allocate_array(cutlass.Int64, 2)
    slot = shared.allocate_array(cutlass.Int32, 1)
    stages_a = shared.allocate_tensor(TYPE, layout_a.outer, 1024, layout_a.inner)
    stages_b = shared.allocate_tensor(TYPE, layout_b.outer, 1024, layout_b.inner)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    load = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=STAGE_BYTES,
        barrier_storage=load_barriers,
    )
    done = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
        barrier_storage=done_barriers,
    )
    memory = TmemAllocator(
        slot, barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=160)
    )
    tiles_a = cute.local_tile(a, (TILE_M, DEPTH), (row, None))
    tiles_b = cute.local_tile(b, (TILE_N, DEPTH), (column, None))
    part = mma.get_slice(0)
    out = part.partition_C(cute.local_tile(c, (TILE_M, TILE_N), (row, column)))
    to_a, from_a = cpasync.tma_partition(
        tma_a,
        0,
        cute.make_layout(1),
        cute.group_modes(stages_a, 0, 3),
        cute.group_modes(part.partition_A(tiles_a), 0, 3),
    )
    to_b, from_b = cpasync.tma_partition(
        tma_b,
        0,
        cute.make_layout(1),
        cute.group_modes(stages_b, 0, 3),
        cute.group_modes(part.partition_B(tiles_b), 0, 3),
    )
    shape = mma.make_fragment_C(mma.partition_shape_C((TILE_M, TILE_N)))
    steps = cute.size(tiles_a, mode=[2])

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
        pieces = (TILE_M, 32)
        total = cute.zipped_divide(whole[(None, None), 0, 0], pieces)
        parts = cute.zipped_divide(out[(None, None), 0, 0], pieces)
        copy = tcgen05.make_tmem_copy(atom, total[None, 0])
        mine = copy.get_slice(thread)
        sources, targets = mine.partition_S(total), mine.partition_D(parts)
        values = cute.make_rmem_tensor(targets[None, None, 0].shape, cutlass.Float32)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        done.consumer_wait(state)
        for piece in cutlass.range_constexpr(TILE_N // 32):
            cute.copy(copy, sources[None, None, piece], values)
            cute.autovec_copy(values, targets[None, None, piece])
        cute.arch.fence_view_async_tmem_load()
        done.consumer_release(state)
        memory.relinquish_alloc_permit()
        pipeline.NamedBarrier(barrier_id=2, num_threads=128).arrive_and_wait()
        memory.free(pointer)


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = blackwell_helpers.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        OperandMajorMode.K,
        OperandMajorMode.K,
        cutlass.Float32,
        tcgen05.CtaGroup.ONE,
        (TILE_M, TILE_N),
    )
    layout_a = blackwell_helpers.make_smem_layout_a(mma, TILE, a.element_type, STAGES)
    layout_b = blackwell_helpers.make_smem_layout_b(mma, TILE, b.element_type, STAGES)
    one_a, one_b = (cute.slice_(each, (None, None, None, 0)) for each in (layout_a, layout_b))
    op = cpasync.CopyBulkTensorTileG2SOp()
    tma_a, coordinates_a = cute.nvgpu.make_tiled_tma_atom_A(op, a, one_a, TILE, mma)
    tma_b, coordinates_b = cute.nvgpu.make_tiled_tma_atom_B(op, b, one_b, TILE, mma)
    umma_pipeline(tma_a, coordinates_a, tma_b, coordinates_b, c, mma, layout_a, layout_b).launch(
        grid=[M // TILE_M, N // TILE_N, 1], block=[THREADS, 1, 1]
    )


def matrix(dtype, rows, columns):
    return make_fake_compact_tensor(dtype, (rows, columns), stride_order=(1, 0), assumed_align=16)


ARGUMENTS = (
    matrix(TYPE, M, K),
    matrix(TYPE, N, K),
    matrix(cutlass.Float32, M, N),
)

"""c[M,N] = a[M,K] · b[N,K]ᵀ + bias[N]: f16, mma.sync by four warps, two stages of cp.async."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import make_fake_compact_tensor

M, N, K = 128, 64, 160
TILE_M, TILE_N, DEPTH, STAGES, THREADS = 64, 32, 32, 2, 128


@cute.kernel
def ldmatrix_gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    bias: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    copy: cute.TiledCopy,
    mma: cute.TiledMma,
):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE_M, DEPTH), (row, None))
    tiles_b = cute.local_tile(b, (TILE_N, DEPTH), (column, None))
    tile_c = cute.local_tile(c, (TILE_M, TILE_N), (row, column))
    tile_bias = cute.local_tile(bias, (TILE_N,), (column,))

    shared = cutlass.utils.SmemAllocator()
    stages_a = shared.allocate_tensor(a.element_type, layout_a, 128)
    stages_b = shared.allocate_tensor(b.element_type, layout_b, 128)
    mine = copy.get_slice(thread)
    from_a, to_a = mine.partition_S(tiles_a), mine.partition_D(stages_a)
    from_b, to_b = mine.partition_S(tiles_b), mine.partition_D(stages_b)

    part = mma.get_slice(thread)
    matrix_a = mma.make_fragment_A(part.partition_A(stages_a)[None, None, None, 0])
    matrix_b = mma.make_fragment_B(part.partition_B(stages_b)[None, None, None, 0])
    total = mma.make_fragment_C(part.partition_C(tile_c))
    total.fill(0.0)

    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    load_a, load_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    rows_a = load_a.get_slice(thread).partition_S(stages_a)
    rows_b = load_b.get_slice(thread).partition_S(stages_b)
    into_a = load_a.get_slice(thread).retile(matrix_a)
    into_b = load_b.get_slice(thread).retile(matrix_b)

    steps = cute.size(tiles_a, mode=[2])
    cute.copy(copy, from_a[None, None, None, 0], to_a[None, None, None, 0])
    cute.copy(copy, from_b[None, None, None, 0], to_b[None, None, None, 0])
    cute.arch.cp_async_commit_group()
    for step in cutlass.range(steps):
        if step + 1 < steps:
            ahead = (step + 1) % STAGES
            cute.copy(copy, from_a[None, None, None, step + 1], to_a[None, None, None, ahead])
            cute.copy(copy, from_b[None, None, None, step + 1], to_b[None, None, None, ahead])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        stage = step % STAGES
        for k in cutlass.range_constexpr(DEPTH // 16):
            cute.copy(load_a, rows_a[None, None, k, stage], into_a[None, None, k])
            cute.copy(load_b, rows_b[None, None, k, stage], into_b[None, None, k])
            cute.gemm(mma, total, matrix_a[None, None, k], matrix_b[None, None, k], total)
        cute.arch.sync_threads()

    place = cute.make_identity_tensor((TILE_M, TILE_N))
    places, out = part.partition_C(place), part.partition_C(tile_c)
    for i in cutlass.range_constexpr(cute.size(total)):
        out[i] = (total[i] + tile_bias[places[i][1]]).to(c.element_type)


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor, c: cute.Tensor):
    atom = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, DEPTH), stride=(DEPTH, 1))
    )
    layout_a = cute.tile_to_shape(atom, (TILE_M, DEPTH, STAGES), (0, 1, 2))
    layout_b = cute.tile_to_shape(atom, (TILE_N, DEPTH, STAGES), (0, 1, 2))
    unit = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL),
        a.element_type,
        num_bits_per_copy=128,
    )
    threads = cute.make_layout((THREADS // 4, 4), stride=(4, 1))
    copy = cute.make_tiled_copy_tv(unit, threads, cute.make_layout((1, 8)))
    op = warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    ldmatrix_gemm(a, b, bias, c, layout_a, layout_b, copy, mma).launch(
        grid=[M // TILE_M, N // TILE_N, 1], block=[THREADS, 1, 1]
    )


def matrix(dtype, *shape):
    order = tuple(reversed(range(len(shape))))
    return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=16)


ARGUMENTS = (
    matrix(cutlass.Float16, M, K),
    matrix(cutlass.Float16, N, K),
    matrix(cutlass.Float32, N),
    matrix(cutlass.Float16, M, N),
)

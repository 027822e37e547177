"""c[m, n] = (a · scale_a)[m, k] · (b · scale_b)[n, k]ᵀ of nvfp4 by a pair of CTAs: packed e2m1, a
scale in e4m3 for 16; each CTA has half of the rows of both, the scales of its rows and all of b."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    cluster,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma_scaled,
    tma,
)

M, N, K = 256, 128, 256
STEP, GROUP = 128, 16
SPLIT, SAME = [[1, 0]], [[0, 0]]


@gluon.jit
def in_rows(blocks, ROWS: gl.constexpr, SCALES: gl.constexpr):
    """Blocks of 128 rows × 4 scales as a matrix of scales."""
    split = blocks.reshape([ROWS // 128, SCALES // 4, 32, 4, 4])
    return split.permute((0, 3, 2, 1, 4)).reshape([ROWS, SCALES])


@gluon.jit
def gluon_scaled_pair(
    a, b, scale_a, scale_b, c, n, k,
    STEP: gl.constexpr, GROUP: gl.constexpr, split: gl.constexpr, same: gl.constexpr,
):  # fmt: skip
    rows: gl.constexpr = a.block_shape[0]
    columns: gl.constexpr = b.block_shape[0]
    scales: gl.constexpr = STEP // GROUP
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    a_blocks = gl.allocate_shared_memory(scale_a.dtype, scale_a.block_shape, scale_a.layout)
    b_blocks = gl.allocate_shared_memory(scale_b.dtype, scale_b.block_shape, scale_b.layout)
    loaded = mbarrier.allocate_mbarrier(two_ctas=True)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    cluster.barrier()
    half: gl.constexpr = TensorMemoryLayout(
        [128, columns], col_stride=1, cga_layout=split, two_ctas=True
    )
    total = allocate_tensor_memory(gl.float32, [rows, columns], half)
    a_scale = allocate_tensor_memory(gl.float8e4nv, [rows, scales], TensorMemoryScalesLayout(split))
    b_scale = allocate_tensor_memory(
        gl.float8e4nv, [columns, scales], TensorMemoryScalesLayout(same)
    )
    for step in range(k // STEP):
        tiles: gl.constexpr = a.nbytes_per_cta + b.nbytes_per_cta
        mbarrier.expect(loaded, tiles + scale_a.nbytes_per_cta + scale_b.nbytes_per_cta)
        tma.async_load(a, [0, step * STEP // 2], loaded, a_tile)
        tma.async_load(b, [0, step * STEP // 2], loaded, b_tile)
        tma.async_load(scale_a, [0, 0, step * scales // 4, 0, 0], loaded, a_blocks)
        tma.async_load(scale_b, [0, 0, step * scales // 4, 0, 0], loaded, b_blocks)
        mbarrier.wait(loaded, step & 1)
        tcgen05_copy(in_rows(a_blocks, rows, scales), a_scale)
        tcgen05_copy(in_rows(b_blocks, columns, scales), b_scale)
        b_view = b_tile.permute((1, 0))
        tcgen05_mma_scaled(
            a_tile, b_view, total, a_scale, b_scale, "e2m1", "e2m1", use_acc=step > 0
        )
        tcgen05_commit(done)
        mbarrier.wait(done, step & 1)
    values = total.load()
    layout: gl.constexpr = values.type.layout
    row = gl.arange(0, rows, gl.SliceLayout(1, layout))
    column = gl.arange(0, columns, gl.SliceLayout(0, layout))
    gl.store(c + row[:, None] * n + column[None, :], values)
    cluster.barrier()


def tile(rows: int, seed: int) -> Descriptor:
    """Packed e2m1, half of the rows in each CTA."""
    block = (rows, STEP // 2)
    layout = gl.NVMMASharedLayout.get_default_for(block, gl.uint8, cga_layout=SPLIT)
    return Descriptor(Tensor("e2m1", (rows, K), integers(seed, -3, 3)), block, layout)


def blocks(rows: int, seed: int, cga_layout: list[list[int]]) -> Descriptor:
    """Scales in blocks of 128 rows × 4, split over the pair or in both."""
    layout = gl.NVMMASharedLayout(0, 8, 5, cga_layout=cga_layout)
    shape = (1, rows // 128, K // GROUP // 4, 2, 256)
    block = (1, rows // 128, STEP // GROUP // 4, 2, 256)
    return Descriptor(Tensor("e4m3", shape, integers(seed, 1, 4)), block, layout)


CASE = Case(
    gluon_scaled_pair,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        a=tile(M, 1),
        b=tile(N, 2),
        scale_a=blocks(M, 3, [[0, 1, 0, 0, 0]]),
        scale_b=blocks(N, 4, [[0, 0, 0, 0, 0]]),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        STEP=Constant(STEP),
        GROUP=Constant(GROUP),
        split=Constant(SPLIT),
        same=Constant(SAME),
    ),
    options=dict(num_warps=4, num_ctas=2),
)

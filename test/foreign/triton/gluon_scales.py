"""c[m, n] = (a · scale_a)[m, k] · (b · scale_b)[n, k]ᵀ of mxfp8 by hand; the scales lie in blocks
of 32 × 16 bytes, as the tensor core wants them, and are copied from shared to tensor memory."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma_scaled,
    tma,
)

M, N, K = 128, 128, 256
STEP = 128


@gluon.jit
def in_rows(blocks, ROWS: gl.constexpr, SCALES: gl.constexpr):
    """Blocks [1, 1, 1, 2, 256] of a 128 × 4 tile of scales as a matrix of rows."""
    flat = blocks.reshape([1, 1, 32, 4, 4]).permute((0, 3, 2, 1, 4))
    return flat.reshape([ROWS, SCALES])


@gluon.jit
def gluon_scales(a, b, scale_a, scale_b, c, n, k, STEP: gl.constexpr):
    rows: gl.constexpr = a.block_shape[0]
    columns: gl.constexpr = b.block_shape[0]
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    a_blocks = gl.allocate_shared_memory(gl.uint8, scale_a.block_shape, scale_a.layout)
    b_blocks = gl.allocate_shared_memory(gl.uint8, scale_b.block_shape, scale_b.layout)
    loaded = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    shape: gl.constexpr = [rows, columns]
    total = allocate_tensor_memory(gl.float32, shape, TensorMemoryLayout(shape, col_stride=1))
    factors: gl.constexpr = TensorMemoryScalesLayout()
    a_scale = allocate_tensor_memory(gl.uint8, [rows, STEP // 32], factors)
    b_scale = allocate_tensor_memory(gl.uint8, [columns, STEP // 32], factors)
    steps = k // STEP
    for step in range(steps):
        tiles: gl.constexpr = a.nbytes_per_cta + b.nbytes_per_cta
        mbarrier.expect(loaded, tiles + scale_a.nbytes_per_cta + scale_b.nbytes_per_cta)
        tma.async_load(a, [0, step * STEP], loaded, a_tile)
        tma.async_load(b, [0, step * STEP], loaded, b_tile)
        tma.async_load(scale_a, [0, 0, step, 0, 0], loaded, a_blocks)
        tma.async_load(scale_b, [0, 0, step, 0, 0], loaded, b_blocks)
        mbarrier.wait(loaded, step & 1)
        tcgen05_copy(in_rows(a_blocks, rows, STEP // 32), a_scale)
        tcgen05_copy(in_rows(b_blocks, columns, STEP // 32), b_scale)
        b_view = b_tile.permute((1, 0))
        tcgen05_mma_scaled(
            a_tile, b_view, total, a_scale, b_scale, "e4m3", "e4m3", use_acc=step > 0
        )
        tcgen05_commit(done)
        mbarrier.wait(done, step & 1)
    values = total.load()
    layout: gl.constexpr = values.type.layout
    row = gl.arange(0, rows, gl.SliceLayout(1, layout))
    column = gl.arange(0, columns, gl.SliceLayout(0, layout))
    gl.store(c + row[:, None] * n + column[None, :], values)


def tile(tensor: Tensor) -> Descriptor:
    """A matrix of fp8, 128 bytes of each row at a time."""
    block = (tensor.shape[0], STEP)
    return Descriptor(tensor, block, gl.NVMMASharedLayout.get_default_for(block, gl.float8e4nv))


def blocks(seed: int) -> Descriptor:
    """Scales of 128 rows, 4 neighbours along K at a time."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8, rank=5)
    tensor = Tensor("u8", (1, 1, K // STEP, 2, 256), integers(seed, 124, 130))
    return Descriptor(tensor, (1, 1, 1, 2, 256), layout)


CASE = Case(
    gluon_scales,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        a=tile(Tensor("e4m3", (M, K), integers(1, -4, 4))),
        b=tile(Tensor("e4m3", (N, K), integers(2, -4, 4))),
        scale_a=blocks(3),
        scale_b=blocks(4),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        STEP=Constant(STEP),
    ),
    options=dict(num_warps=4),
)

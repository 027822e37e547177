"""c[m, n] = a[m, k] · b[n, k]ᵀ by hand, a cluster a tile: one thread asks for the next waiting
cluster while the tile at hand is computed, and all warps read the answer."""

from cases import Case, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    clc,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)

M, N, K = 384, 128, 64
TILE_M, TILE_N = 128, 64


@gluon.jit
def gluon_stealing(a, b, c):
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    answer = gl.allocate_shared_memory(gl.int64, [2], plain)
    loaded = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    answered = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    mbarrier.init(answered, count=1)
    shape: gl.constexpr = c.block_shape
    total = allocate_tensor_memory(gl.float32, shape, TensorMemoryLayout(shape, col_stride=1))
    row = gl.program_id(0) * a.block_shape[0]
    column = gl.program_id(1) * b.block_shape[0]
    phase = 0
    more = True
    while more:
        mbarrier.expect(answered, 16)
        clc.try_cancel(answer, answered)
        mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [row, 0], loaded, a_tile)
        tma.async_load(b, [column, 0], loaded, b_tile)
        mbarrier.wait(loaded, phase)
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), total, use_acc=False)
        tcgen05_commit(done)
        mbarrier.wait(done, phase)
        tma.store_wait(0)
        staging.store(total.load())
        fence_async_shared()
        tma.async_store(c, [row, column], staging)
        mbarrier.wait(answered, phase)
        found = clc.load_result(answer)
        more = found.is_canceled()
        if more:
            row = found.program_id(0) * a.block_shape[0]
            column = found.program_id(1) * b.block_shape[0]
        phase ^= 1
    tma.store_wait(0)


def tile(tensor: Tensor, block: tuple[int, int], kind: gl.dtype) -> Descriptor:
    """A tensor that is copied by blocks in the widest swizzle."""
    return Descriptor(tensor, block, gl.NVMMASharedLayout.get_default_for(block, kind))


CASE = Case(
    gluon_stealing,
    targets=(100,),
    grid=(3, 2),
    arguments=dict(
        a=tile(Tensor("bf16", (M, K), integers(1, -4, 4)), (TILE_M, K), gl.bfloat16),
        b=tile(Tensor("bf16", (N, K), integers(2, -4, 4)), (TILE_N, K), gl.bfloat16),
        c=tile(Tensor("f32", (M, N)), (TILE_M, TILE_N), gl.float32),
    ),
    options=dict(num_warps=4),
)

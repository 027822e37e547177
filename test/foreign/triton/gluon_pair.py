"""c[m, n] = a[m, k] · b[n, k]ᵀ by a pair of CTAs: each holds half of the rows of both operands, one
issues the products of both."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)

M, N, K = 256, 128, 192
TILE_M, TILE_N, TILE_K, STAGES = 256, 128, 64, 2


@gluon.jit
def copies(a, b, a_ring, b_ring, full, empty, k):
    stages: gl.constexpr = a_ring.shape[0]
    width: gl.constexpr = a.block_shape[1]
    steps = gl.cdiv(k, width)
    for step in range(steps):
        stage = step % stages
        mbarrier.wait(empty.index(stage), ((step // stages) & 1) ^ 1)
        mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [0, step * width], full.index(stage), a_ring.index(stage))
        tma.async_load(b, [0, step * width], full.index(stage), b_ring.index(stage))
    for step in range(steps, steps + stages):  # the other CTA signals until then
        mbarrier.wait(empty.index(step % stages), ((step // stages) & 1) ^ 1)


@gluon.jit
def products(a_ring, b_ring, full, empty, done, total, steps):
    stages: gl.constexpr = a_ring.shape[0]
    for step in range(steps):
        stage = step % stages
        mbarrier.wait(full.index(stage), (step // stages) & 1)
        b_tile = b_ring.index(stage).permute((1, 0))
        tcgen05_mma(a_ring.index(stage), b_tile, total, use_acc=step > 0)
        tcgen05_commit(empty.index(stage))
    tcgen05_commit(done)


@gluon.jit
def results(c, done, total):
    mbarrier.wait(done, 0)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(total.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [0, 0], staging)
    tma.store_wait(0)


@gluon.jit
def gluon_pair(a, b, c, k, STAGES: gl.constexpr):
    a_ring = gl.allocate_shared_memory(
        a.dtype, [STAGES, a.block_shape[0], a.block_shape[1]], a.layout
    )
    b_ring = gl.allocate_shared_memory(
        b.dtype, [STAGES, b.block_shape[0], b.block_shape[1]], b.layout
    )
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=True)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    mbarrier.init(done, count=1)
    half: gl.constexpr = TensorMemoryLayout(
        [128, c.block_shape[1]], col_stride=1, cga_layout=[[1, 0]], two_ctas=True
    )
    total = allocate_tensor_memory(gl.float32, c.block_shape, half)
    gl.warp_specialize(
        [
            (results, (c, done, total)),
            (copies, (a, b, a_ring, b_ring, full, empty, k)),
            (products, (a_ring, b_ring, full, empty, done, total, gl.cdiv(k, a.block_shape[1]))),
        ],
        [1, 1],
        [24, 24],
    )


def tile(tensor: Tensor, block: tuple[int, int], kind: gl.dtype) -> Descriptor:
    """A tensor of which each CTA of the pair copies half of the rows."""
    layout = gl.NVMMASharedLayout.get_default_for(block, kind, cga_layout=[[1, 0]])
    return Descriptor(tensor, block, layout)


CASE = Case(
    gluon_pair,
    targets=(100,),
    grid=(1, 1),
    arguments=dict(
        a=tile(Tensor("f16", (M, K), integers(1, -4, 4)), (TILE_M, TILE_K), gl.float16),
        b=tile(Tensor("f16", (N, K), integers(2, -4, 4)), (TILE_N, TILE_K), gl.float16),
        c=tile(Tensor("f32", (M, N)), (TILE_M, TILE_N), gl.float32),
        k=K,
        STAGES=Constant(STAGES),
    ),
    options=dict(num_warps=4, num_ctas=2),
)

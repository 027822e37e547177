"""c[m, n] = a[m, k] · b[n, k]ᵀ by hand: one warp copies into a ring of three stages, a warpgroup
keeps one product under way in registers."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

M, N, K = 96, 64, 256
TILE_M, TILE_N, TILE_K, STAGES = 64, 64, 64, 3


@gluon.jit
def copies(a, b, a_ring, b_ring, full, empty, row, column, k):
    stages: gl.constexpr = a_ring.shape[0]
    width: gl.constexpr = a.block_shape[1]
    for step in range(gl.cdiv(k, width)):
        stage = step % stages
        mbarrier.wait(empty.index(stage), ((step // stages) & 1) ^ 1)
        mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [row, step * width], full.index(stage), a_ring.index(stage))
        tma.async_load(b, [column, step * width], full.index(stage), b_ring.index(stage))


@gluon.jit
def products(c, a_ring, b_ring, full, empty, row, column, steps, layout: gl.constexpr):
    stages: gl.constexpr = a_ring.shape[0]
    total = gl.zeros(c.block_shape, gl.float32, layout)
    for step in range(steps):
        stage = step % stages
        mbarrier.wait(full.index(stage), (step // stages) & 1)
        b_tile = b_ring.index(stage).permute((1, 0))
        total = warpgroup_mma(a_ring.index(stage), b_tile, total, is_async=True)
        total = warpgroup_mma_wait(1, deps=(total,))
        mbarrier.arrive(empty.index((step + stages - 1) % stages), pred=step > 0)
    total = warpgroup_mma_wait(0, deps=(total,))
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(total.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], staging)
    tma.store_wait(0)


@gluon.jit
def gluon_warpgroups(a, b, c, k, STAGES: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0) * a.block_shape[0]
    column = gl.program_id(1) * b.block_shape[0]
    a_ring = gl.allocate_shared_memory(
        a.dtype, [STAGES, a.block_shape[0], a.block_shape[1]], a.layout
    )
    b_ring = gl.allocate_shared_memory(
        b.dtype, [STAGES, b.block_shape[0], b.block_shape[1]], b.layout
    )
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    steps = gl.cdiv(k, a.block_shape[1])
    gl.warp_specialize(
        [
            (products, (c, a_ring, b_ring, full, empty, row, column, steps, layout)),
            (copies, (a, b, a_ring, b_ring, full, empty, row, column, k)),
        ],
        [1],
        [24],
    )


def tile(tensor: Tensor, block: tuple[int, int], kind: gl.dtype) -> Descriptor:
    """A tensor that is copied by blocks in the widest swizzle."""
    return Descriptor(tensor, block, gl.NVMMASharedLayout.get_default_for(block, kind))


CASE = Case(
    gluon_warpgroups,
    targets=(90,),
    grid=(2, 1),
    arguments=dict(
        a=tile(Tensor("bf16", (M, K), integers(1, -8, 8)), (TILE_M, TILE_K), gl.bfloat16),
        b=tile(Tensor("bf16", (N, K), integers(2, -8, 8)), (TILE_N, TILE_K), gl.bfloat16),
        c=tile(Tensor("f32", (M, N)), (TILE_M, TILE_N), gl.float32),
        k=K,
        STAGES=Constant(STAGES),
        layout=Constant(
            gl.NVMMADistributedLayout(
                version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, TILE_N, 16]
            )
        ),
    ),
    options=dict(num_warps=4),
)

"""c[m, n] = a[m, k] · b[k, n] by hand: copies by threads into a ring of three stages, fragments
loaded from swizzled shared memory, products in registers."""

from cases import Case, Constant, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

M, N, K = 64, 64, 160
TILE_M, TILE_N, TILE_K, STAGES = 32, 64, 32, 3


@gluon.jit
def fetch(a_at, b_at, a_ring, b_ring, step, left, n, wanted):
    stages: gl.constexpr = a_ring.shape[0]
    width: gl.constexpr = a_ring.shape[2]
    async_copy.async_load(a_ring.index(step % stages), a_at + step * width, mask=wanted)
    async_copy.async_load(b_ring.index(step % stages), b_at + step * width * n, mask=wanted)
    async_copy.commit_group()


@gluon.jit
def gluon_registers(
    a, b, c, n, k,
    TILE_M: gl.constexpr, TILE_N: gl.constexpr, TILE_K: gl.constexpr, STAGES: gl.constexpr,
    rows: gl.constexpr, columns: gl.constexpr, shared: gl.constexpr, product: gl.constexpr,
):  # fmt: skip
    m_a = gl.program_id(0) * TILE_M + gl.arange(0, TILE_M, gl.SliceLayout(1, rows))
    k_a = gl.arange(0, TILE_K, gl.SliceLayout(0, rows))
    k_b = gl.arange(0, TILE_K, gl.SliceLayout(1, columns))
    n_b = gl.program_id(1) * TILE_N + gl.arange(0, TILE_N, gl.SliceLayout(0, columns))
    a_at = a + m_a[:, None] * k + k_a[None, :]
    b_at = b + k_b[:, None] * n + n_b[None, :]
    a_ring = gl.allocate_shared_memory(gl.float16, [STAGES, TILE_M, TILE_K], shared)
    b_ring = gl.allocate_shared_memory(gl.float16, [STAGES, TILE_K, TILE_N], shared)
    steps = k // TILE_K
    for step in gl.static_range(STAGES - 1):
        fetch(a_at, b_at, a_ring, b_ring, step, k, n, step < steps)
    total = gl.zeros([TILE_M, TILE_N], gl.float32, product)
    for step in range(steps):
        async_copy.wait_group(STAGES - 2)
        gl.barrier()
        fetch(a_at, b_at, a_ring, b_ring, step + STAGES - 1, k, n, step + STAGES - 1 < steps)
        a_tile = a_ring.index(step % STAGES).load(gl.DotOperandLayout(0, product, 2))
        b_tile = b_ring.index(step % STAGES).load(gl.DotOperandLayout(1, product, 2))
        total = mma_v2(a_tile, b_tile, total)
    m_c = gl.program_id(0) * TILE_M + gl.arange(0, TILE_M, gl.SliceLayout(1, product))
    n_c = gl.program_id(1) * TILE_N + gl.arange(0, TILE_N, gl.SliceLayout(0, product))
    gl.store(c + m_c[:, None] * n + n_c[None, :], total)


CASE = Case(
    gluon_registers,
    targets=(80,),
    grid=(2, 1),
    arguments=dict(
        a=Tensor("f16", (M, K), integers(1, -8, 8)),
        b=Tensor("f16", (K, N), integers(2, -8, 8)),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(TILE_M),
        TILE_N=Constant(TILE_N),
        TILE_K=Constant(TILE_K),
        STAGES=Constant(STAGES),
        rows=Constant(gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])),
        columns=Constant(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])),
        shared=Constant(gl.SwizzledSharedLayout(8, 2, 4, order=[1, 0])),
        product=Constant(gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])),
    ),
    options=dict(num_warps=4),
)

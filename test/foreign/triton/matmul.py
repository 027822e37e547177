"""c[m, n] = a[m, k] · b[n, k]ᵀ with masked edges, through cp.async and the tensor core."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 50, 72, 104


@triton.jit
def matmul(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)[:, None]
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)[None, :]
    step = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in tl.range(0, k, TILE_K):
        inner = start + step
        a_tile = tl.load(
            a + row * k + inner[None, :], mask=(row < m) & (inner[None, :] < k), other=0.0
        )
        b_tile = tl.load(
            b + column * k + inner[:, None], mask=(column < n) & (inner[:, None] < k), other=0.0
        )
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


CASE = Case(
    matmul,
    targets=(80, 90, 100),
    grid=(1, 2),
    arguments=dict(
        a=Tensor("f16", (M, K), integers(1, -8, 8)),
        b=Tensor("f16", (N, K), integers(2, -8, 8)),
        c=Tensor("f32", (M, N)),
        m=M,
        n=N,
        k=K,
        TILE_M=Constant(64),
        TILE_N=Constant(64),
        TILE_K=Constant(32),
    ),
    options=dict(num_warps=4, num_stages=3),
)

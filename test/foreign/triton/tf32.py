"""c[m, n] = a[m, k] · b[k, n] of f32 on the tf32 tensor cores; every input is exact in tf32."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 64, 64, 48


@triton.jit
def tf32(a, b, c, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in tl.range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        a_tile = tl.load(a + row[:, None] * k + inner[None, :])
        b_tile = tl.load(b + inner[:, None] * n + column[None, :])
        total = tl.dot(a_tile, b_tile, total, input_precision="tf32")
    tl.store(c + row[:, None] * n + column[None, :], total)


CASE = Case(
    tf32,
    targets=(80, 90, 100),
    grid=(1, 1),
    arguments=dict(
        a=Tensor("f32", (M, K), integers(1, -100, 100)),
        b=Tensor("f32", (K, N), integers(2, -100, 100)),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(64),
        TILE_N=Constant(64),
        TILE_K=Constant(16),
    ),
    options=dict(num_warps=4, num_stages=3),
)

"""c[m, n] = a[m, k] · b[n, k]ᵀ of fp8: e4m3 rows, e5m2 columns, f16 result."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 128, 64, 128


@triton.jit
def small_floats(a, b, c, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in tl.range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        a_tile = tl.load(a + row[:, None] * k + inner[None, :])
        b_tile = tl.load(b + column[None, :] * k + inner[:, None])
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16))


CASE = Case(
    small_floats,
    targets=(90, 100),
    grid=(1, 1),
    arguments=dict(
        a=Tensor("e4m3", (M, K), integers(1, -4, 4)),
        b=Tensor("e5m2", (N, K), integers(2, -4, 4)),
        c=Tensor("f16", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(128),
        TILE_N=Constant(64),
        TILE_K=Constant(64),
    ),
    options=dict(num_warps=4, num_stages=2),
)

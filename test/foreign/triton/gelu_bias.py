"""out[m, n] = gelu(a[m, k] · b[k, n] + bias[n]) in bf16, ragged in all three extents."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, normal

M, N, K = 40, 50, 60


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_bias(
    a, b, bias, out, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    across = tl.cdiv(n, TILE_N)
    row = tl.program_id(0) // across * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(0) % across * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    a_at = a + row[:, None] * k + inner[None, :]
    b_at = b + inner[:, None] * n + column[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        left = k - start
        a_tile = tl.load(a_at, mask=(row[:, None] < m) & (inner[None, :] < left), other=0.0)
        b_tile = tl.load(b_at, mask=(inner[:, None] < left) & (column[None, :] < n), other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a_at += TILE_K
        b_at += TILE_K * n
    total += tl.load(bias + column, mask=column < n, other=0.0)[None, :]
    at = out + row[:, None] * n + column[None, :]
    tl.store(at, gelu(total).to(tl.bfloat16), mask=(row[:, None] < m) & (column[None, :] < n))


CASE = Case(
    gelu_bias,
    targets=(80, 90, 100),
    grid=(2,),
    arguments=dict(
        a=Tensor("bf16", (M, K), normal(1)),
        b=Tensor("bf16", (K, N), normal(2)),
        bias=Tensor("f32", (N,), normal(3)),
        out=Tensor("bf16", (M, N)),
        m=M,
        n=N,
        k=K,
        TILE_M=Constant(32),
        TILE_N=Constant(64),
        TILE_K=Constant(32),
    ),
    options=dict(num_warps=2, num_stages=2),
)

"""c[m, n] = a[m, k] · b[n, k]ᵀ, a program a cluster of two CTAs, through tensor descriptors."""

import triton
import triton.language as tl
from cases import Case, Constant, Descriptor, Tensor, integers

M, N, K = 256, 64, 96
TILE_M, TILE_N, TILE_K = 128, 64, 32


@triton.jit
def clusters(a, b, c, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    c.store([row, column], total.to(tl.bfloat16))


CASE = Case(
    clusters,
    targets=(90, 100),
    grid=(2, 1),
    arguments=dict(
        a=Descriptor(Tensor("bf16", (M, K), integers(1, -4, 4)), (TILE_M, TILE_K)),
        b=Descriptor(Tensor("bf16", (N, K), integers(2, -4, 4)), (TILE_N, TILE_K)),
        c=Descriptor(Tensor("bf16", (M, N)), (TILE_M, TILE_N)),
        k=K,
        TILE_M=Constant(TILE_M),
        TILE_N=Constant(TILE_N),
        TILE_K=Constant(TILE_K),
    ),
    options=dict(num_warps=4, num_stages=3, num_ctas=2),
)

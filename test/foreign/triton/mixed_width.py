"""c[m, n] = a[m, k] · (b · scale_b)[n, k]ᵀ: bf16 times packed e2m1 with a ue8m0 scale for 32."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 64, 64, 128
GROUP = 32


@triton.jit
def mixed_width(
    a, b, scale_b, c, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, TILE_M)
    column = tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    pair = tl.arange(0, TILE_K // 2)
    block = tl.arange(0, TILE_K // GROUP)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        a_tile = tl.load(a + row[:, None] * k + start + inner[None, :])
        b_tile = tl.load(b + column[None, :] * (k // 2) + start // 2 + pair[:, None])
        b_scale = tl.load(
            scale_b + column[:, None] * (k // GROUP) + start // GROUP + block[None, :]
        )
        total = tl.dot_scaled(a_tile, None, "bf16", b_tile, b_scale, "e2m1", total)
    tl.store(c + row[:, None] * n + column[None, :], total)


CASE = Case(
    mixed_width,
    targets=(80, 90, 100),
    grid=(1,),
    arguments=dict(
        a=Tensor("bf16", (M, K), integers(1, -4, 4)),
        b=Tensor("e2m1", (N, K), integers(2, -4, 4)),
        scale_b=Tensor("u8", (N, K // GROUP), integers(3, 124, 130)),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(M),
        TILE_N=Constant(N),
        TILE_K=Constant(64),
        GROUP=Constant(GROUP),
    ),
    options=dict(num_warps=4, num_stages=2),
)

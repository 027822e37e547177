"""c[m, n] = (a · scale_a)[m, k] · (b · scale_b)[n, k]ᵀ: packed e2m1 times e4m3, for which a tensor
core wants 4-bit elements 8 bytes in 16."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 128, 64, 256
GROUP = 32


@triton.jit
def mixed_scales(
    a, scale_a, b, scale_b, c, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, TILE_M)
    column = tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    pair = tl.arange(0, TILE_K // 2)
    block = tl.arange(0, TILE_K // GROUP)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        a_tile = tl.load(a + row[:, None] * (k // 2) + start // 2 + pair[None, :])
        b_tile = tl.load(b + column[None, :] * k + start + inner[:, None])
        at = start // GROUP + block[None, :]
        a_scale = tl.load(scale_a + row[:, None] * (k // GROUP) + at)
        b_scale = tl.load(scale_b + column[:, None] * (k // GROUP) + at)
        total = tl.dot_scaled(a_tile, a_scale, "e2m1", b_tile, b_scale, "e4m3", total)
    tl.store(c + row[:, None] * n + column[None, :], total)


CASE = Case(
    mixed_scales,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        a=Tensor("e2m1", (M, K), integers(1, -4, 4)),
        scale_a=Tensor("u8", (M, K // GROUP), integers(2, 124, 130)),
        b=Tensor("e4m3", (N, K), integers(3, -4, 4)),
        scale_b=Tensor("u8", (N, K // GROUP), integers(4, 124, 130)),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(M),
        TILE_N=Constant(N),
        TILE_K=Constant(128),
        GROUP=Constant(GROUP),
    ),
    options=dict(num_warps=4, num_stages=2),
)

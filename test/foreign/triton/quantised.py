"""out[m, n] = f16(scale_a[m] * scale_b[n] * (a[m, k] · b[k, n])) of s8 with s32 sums."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers, normal

M, N, K = 64, 64, 96


@triton.jit
def quantised(
    a, b, scale_a, scale_b, out, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), tl.int32)
    for start in tl.range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        a_tile = tl.load(a + row[:, None] * k + inner[None, :])
        b_tile = tl.load(b + inner[:, None] * n + column[None, :])
        total = tl.dot(a_tile, b_tile, total, out_dtype=tl.int32)
    scale = tl.load(scale_a + row)[:, None] * tl.load(scale_b + column)[None, :]
    tl.store(out + row[:, None] * n + column[None, :], (total * scale).to(tl.float16))


CASE = Case(
    quantised,
    targets=(80, 90, 100),
    grid=(1, 2),
    arguments=dict(
        a=Tensor("s8", (M, K), integers(1, -128, 127)),
        b=Tensor("s8", (K, N), integers(2, -128, 127)),
        scale_a=Tensor(
            "f32", (M,), {**normal(3), "distribution": "uniform", "low": 0, "high": 0.01}
        ),
        scale_b=Tensor(
            "f32", (N,), {**normal(4), "distribution": "uniform", "low": 0, "high": 0.01}
        ),
        out=Tensor("f16", (M, N)),
        n=N,
        k=K,
        TILE_M=Constant(64),
        TILE_N=Constant(32),
        TILE_K=Constant(32),
    ),
    options=dict(num_warps=4, num_stages=3),
)

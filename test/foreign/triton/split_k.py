"""c[m, n] += a[m, k] · b[k, n]: four programs share a tile's K and add into it atomically; the
last one to arrive, by a counter, also scales the tile."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 64, 32, 128


@triton.jit
def split_k(
    a, b, c, arrivals, n, k,
    PARTS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.arange(0, TILE_N)
    part = tl.program_id(1)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in tl.range(part * TILE_K, k, PARTS * TILE_K):
        inner = start + tl.arange(0, TILE_K)
        a_tile = tl.load(a + row[:, None] * k + inner[None, :])
        b_tile = tl.load(b + inner[:, None] * n + column[None, :])
        total = tl.dot(a_tile, b_tile, total)
    at = c + row[:, None] * n + column[None, :]
    tl.atomic_add(at, total, sem="relaxed")
    tl.debug_barrier()
    before = tl.atomic_add(arrivals + tl.program_id(0), 1, sem="acq_rel")
    if before == PARTS - 1:
        tl.store(at, tl.load(at, cache_modifier=".cg") * 0.5)


CASE = Case(
    split_k,
    targets=(80, 90, 100),
    grid=(2, 4),
    arguments=dict(
        a=Tensor("f16", (M, K), integers(1, -8, 8)),
        b=Tensor("f16", (K, N), integers(2, -8, 8)),
        c=Tensor("f32", (M, N), integers(3, -8, 8), role="inout"),
        arrivals=Tensor("s32", (2,), {"constant": 0}, role="inout"),
        n=N,
        k=K,
        PARTS=Constant(4),
        TILE_M=Constant(32),
        TILE_N=Constant(32),
        TILE_K=Constant(16),
    ),
    options=dict(num_warps=2, num_stages=2),
)

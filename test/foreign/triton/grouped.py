"""Matrices of different heights times one weight each: rows and starts come from a table, one
program walks over the tiles of all groups."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

HEIGHTS = (33, 64, 7, 16)
ROWS, N, K = sum(HEIGHTS), 48, 64


@triton.jit
def grouped(
    a, weights, out, ends, n, k, programs,
    GROUPS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    tile = tl.program_id(0)
    passed = 0
    first = 0
    for group in range(GROUPS):
        end = tl.load(ends + group)
        tiles = tl.cdiv(end - first, TILE_M)
        while tile < passed + tiles:
            row = first + (tile - passed) * TILE_M + tl.arange(0, TILE_M)
            total = tl.zeros((TILE_M, TILE_N), tl.float32)
            for start in range(0, k, TILE_K):
                a_tile = tl.load(
                    a + row[:, None] * k + start + inner[None, :],
                    mask=row[:, None] < end,
                    other=0.0,
                )
                at = weights + (group * k + start + inner[:, None]) * n + column[None, :]
                b_tile = tl.load(at, mask=column[None, :] < n, other=0.0)
                total = tl.dot(a_tile, b_tile, total)
            at = out + row[:, None] * n + column[None, :]
            tl.store(at, total, mask=(row[:, None] < end) & (column[None, :] < n))
            tile += programs
        passed += tiles
        first = end


CASE = Case(
    grouped,
    targets=(80, 90, 100),
    grid=(3,),
    arguments=dict(
        a=Tensor("f16", (ROWS, K), integers(1, -8, 8)),
        weights=Tensor("f16", (len(HEIGHTS), K, N), integers(2, -8, 8)),
        out=Tensor("f32", (ROWS, N)),
        ends=Tensor("s32", (len(HEIGHTS),), {"file": "grouped_ends.npy"}),
        n=N,
        k=K,
        programs=3,
        GROUPS=Constant(len(HEIGHTS)),
        TILE_M=Constant(32),
        TILE_N=Constant(64),
        TILE_K=Constant(32),
    ),
    options=dict(num_warps=4, num_stages=2),
)

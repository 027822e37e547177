"""c[m, n] = a[m, k] · b[n, k]ᵀ through tensor descriptors made by the host: programs walk over the
tiles, loads and stores are tensor copies."""

import triton
import triton.language as tl
from cases import Case, Constant, Descriptor, Tensor, integers

M, N, K = 160, 96, 64
TILE_M, TILE_N, TILE_K = 64, 64, 32


@triton.jit
def persistent(
    a, b, c, m, n, k, programs,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(n, TILE_N)
    tiles = tl.cdiv(m, TILE_M) * across
    for tile in tl.range(tl.program_id(0), tiles, programs, flatten=True):
        row = tile // across * TILE_M
        column = tile % across * TILE_N
        total = tl.zeros((TILE_M, TILE_N), tl.float32)
        for step in range(tl.cdiv(k, TILE_K)):
            a_tile = a.load([row, step * TILE_K])
            b_tile = b.load([column, step * TILE_K])
            total = tl.dot(a_tile, b_tile.T, total)
        c.store([row, column], total.to(tl.float16))


CASE = Case(
    persistent,
    targets=(90, 100),
    grid=(2,),
    arguments=dict(
        a=Descriptor(Tensor("f16", (M, K), integers(1, -4, 4)), (TILE_M, TILE_K)),
        b=Descriptor(Tensor("f16", (N, K), integers(2, -4, 4)), (TILE_N, TILE_K)),
        c=Descriptor(Tensor("f16", (M, N)), (TILE_M, TILE_N)),
        m=M,
        n=N,
        k=K,
        programs=2,
        TILE_M=Constant(TILE_M),
        TILE_N=Constant(TILE_N),
        TILE_K=Constant(TILE_K),
    ),
    options=dict(num_warps=4, num_stages=3),
)

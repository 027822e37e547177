"""c[m, n] = a[m, k] · b[n, k]ᵀ: a program a tile; running programs cancel and take over waiting
ones; the inputs may come from a kernel that still runs."""

import triton
import triton.language as tl
from cases import Case, Constant, Descriptor, Tensor, integers

M, N, K = 384, 128, 64
TILE_M, TILE_N, TILE_K = 128, 64, 32


@triton.jit
def stealing(a, b, c, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    tl.extra.cuda.gdc_launch_dependents()
    c.store([row, column], total)


CASE = Case(
    stealing,
    targets=(100,),
    grid=(3, 2),
    arguments=dict(
        a=Descriptor(Tensor("f16", (M, K), integers(1, -8, 8)), (TILE_M, TILE_K)),
        b=Descriptor(Tensor("f16", (N, K), integers(2, -8, 8)), (TILE_N, TILE_K)),
        c=Descriptor(Tensor("f32", (M, N)), (TILE_M, TILE_N)),
        k=K,
        TILE_M=Constant(TILE_M),
        TILE_N=Constant(TILE_N),
        TILE_K=Constant(TILE_K),
    ),
    options=dict(num_warps=4, num_stages=2, clc=True, launch_pdl=True),
)

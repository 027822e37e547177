"""c[m, n] = a[m, k] · b[k, n] through tensor descriptors that the kernel itself builds."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

M, N, K = 100, 72, 80


@triton.jit
def device_descriptors(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    rows = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TILE_M, TILE_K])
    columns = tl.make_tensor_descriptor(b, [k, n], [n, 1], [TILE_K, TILE_N])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TILE_M, TILE_N])
    row, column = tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        total = tl.dot(rows.load([row, start]), columns.load([start, column]), total)
    result.store([row, column], total)


CASE = Case(
    device_descriptors,
    targets=(90, 100),
    grid=(2, 2),
    arguments=dict(
        a=Tensor("bf16", (M, K), integers(1, -8, 8)),
        b=Tensor("bf16", (K, N), integers(2, -8, 8)),
        c=Tensor("f32", (M, N)),
        m=M,
        n=N,
        k=K,
        TILE_M=Constant(64),
        TILE_N=Constant(64),
        TILE_K=Constant(32),
    ),
    options=dict(num_warps=4, num_stages=2),
)

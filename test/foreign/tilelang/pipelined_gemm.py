"""c[M,N] = a[M,K] · b[N,K]ᵀ: three stages; what carries it (cp.async and mma.sync, TMA and wgmma)
is the compiler's choice by chip."""

import tilelang.language as T

M, N, K = 192, 128, 224


@T.prim_func
def pipelined_gemm(
    a: T.Tensor((M, K), "bfloat16"),
    b: T.Tensor((N, K), "bfloat16"),
    c: T.Tensor((M, N), "float32"),
):
    with T.Kernel(N // 64, M // 64, threads=128) as (column, row):
        tile_a = T.alloc_shared((64, 32), "bfloat16")
        tile_b = T.alloc_shared((64, 32), "bfloat16")
        total = T.alloc_fragment((64, 64), "float32")
        T.clear(total)
        for step in T.Pipelined(K // 32, num_stages=3):
            T.copy(a[row * 64, step * 32], tile_a)
            T.copy(b[column * 64, step * 32], tile_b)
            T.gemm(tile_a, tile_b, total, transpose_B=True)
        T.copy(total, c[row * 64, column * 64])


KERNEL = pipelined_gemm

OPTIONS = {"tl.disable_warp_specialized": True}

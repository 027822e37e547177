"""c[M,N] = a[M,K] · b[N,K]ᵀ with the accumulator in tensor memory, bf16 to f16."""

import tilelang.language as T

M, N, K = 256, 128, 256


@T.prim_func
def tmem_gemm(
    a: T.Tensor((M, K), "bfloat16"),
    b: T.Tensor((N, K), "bfloat16"),
    c: T.Tensor((M, N), "float16"),
):
    with T.Kernel(N // 64, M // 128, threads=256) as (column, row):
        tile_a = T.alloc_shared((128, 64), "bfloat16")
        tile_b = T.alloc_shared((64, 64), "bfloat16")
        tile_c = T.alloc_shared((128, 64), "float16")
        total = T.alloc_tmem([128, 64], "float32")
        copied = T.alloc_fragment((128, 64), "float32")
        done = T.alloc_barrier(1)
        for step in T.serial(K // 64):
            T.copy(a[row * 128, step * 64], tile_a)
            T.copy(b[column * 64, step * 64], tile_b)
            T.tcgen05_gemm(
                tile_a, tile_b, total, transpose_B=True, mbar=done, clear_accum=step == 0
            )
            T.mbarrier_wait_parity(done, step % 2)
        T.copy(total, copied)
        T.copy(copied, tile_c)
        T.copy(tile_c, c[row * 128, column * 64])


KERNEL = tmem_gemm

OPTIONS = {"tl.disable_warp_specialized": True}

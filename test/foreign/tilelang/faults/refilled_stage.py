"""TileLang refills the only stage by cp.async before it waits for the product that reads it: the
wait, which is part of this source, stays behind the prefetch that the pipeliner puts in."""

import tilelang.language as T

M, N, K = 256, 128, 256


@T.prim_func
def refilled_stage(
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
        for step in T.Pipelined(K // 64, num_stages=1):
            T.copy(a[row * 128, step * 64], tile_a)
            T.copy(b[column * 64, step * 64], tile_b)
            T.tcgen05_gemm(
                tile_a, tile_b, total, transpose_B=True, mbar=done, clear_accum=step == 0
            )
            T.mbarrier_wait_parity(done, step % 2)
        T.copy(total, copied)
        T.copy(copied, tile_c)
        T.copy(tile_c, c[row * 128, column * 64])


KERNEL = refilled_stage

OPTIONS = {"tl.disable_warp_specialized": True}

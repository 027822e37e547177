"""TileLang leaves out the proxy fences before the last two products of a pipeline that cp.async
fills: the last one stands before the waits for their copies."""

import tilelang.language as T

M, N, K = 192, 128, 224


@T.prim_func
def unfenced_drain(
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


KERNEL = unfenced_drain

OPTIONS = {"tl.disable_warp_specialized": True}

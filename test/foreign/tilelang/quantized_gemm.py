"""c[M,N] = a[M,K] · (scale[n,K/32] · b[N,K])ᵀ + bias[N]: f16 by 4-bit integers, two a byte, that
are unpacked between shared memory and the tensor core; odd M, whose last rows are guarded."""

import tilelang.language as T

M, N, K, GROUP = 70, 96, 128, 32


@T.prim_func
def quantized_gemm(
    a: T.Tensor((M, K), "float16"),
    b: T.Tensor((N, K // 2), "uint8"),
    scale: T.Tensor((N, K // GROUP), "float16"),
    bias: T.Tensor((N,), "float32"),
    c: T.Tensor((M, N), "float32"),
):
    with T.Kernel(N // 32, T.ceildiv(M, 64), threads=128) as (column, row):
        tile_a = T.alloc_shared((64, GROUP), "float16")
        packed = T.alloc_shared((32, GROUP // 2), "uint8")
        bytes_b = T.alloc_fragment((32, GROUP // 2), "uint8")
        numbers = T.alloc_fragment((32, GROUP), "float16")
        tile_b = T.alloc_shared((32, GROUP), "float16")
        total = T.alloc_fragment((64, 32), "float32")
        T.clear(total)
        for step in T.Pipelined(K // GROUP, num_stages=2):
            T.copy(a[row * 64, step * GROUP], tile_a)
            T.copy(b[column * 32, step * (GROUP // 2)], packed)
            T.copy(packed, bytes_b)
            for i, j in T.Parallel(32, GROUP):
                code = (bytes_b[i, j // 2] >> T.Cast("uint8", j % 2 * 4)) & T.uint8(15)
                signed = T.Cast("float16", T.Cast("int32", code) - 8)
                numbers[i, j] = signed * scale[column * 32 + i, step]
            T.copy(numbers, tile_b)
            T.gemm(tile_a, tile_b, total, transpose_B=True)
        for i, j in T.Parallel(64, 32):
            total[i, j] += bias[column * 32 + j]
        T.copy(total, c[row * 64, column * 32])


KERNEL = quantized_gemm

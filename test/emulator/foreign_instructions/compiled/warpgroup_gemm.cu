// C[64,16] = A[64,K] . B[16,K]^T by one warpgroup: cp.async into tiles with the 128-byte swizzle,
// then wgmma.mma_async on both of them. K is a multiple of 64.
//   nvcc -ptx -O3 -arch=sm_90a warpgroup_gemm.cu -o warpgroup_gemm.ptx
#include <cuda_bf16.h>
#include <stdint.h>

typedef const __nv_bfloat16* Matrix;

__device__ inline uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ inline void fill(uint32_t tile, Matrix source, int rows, int K) {
  for (int i = threadIdx.x; i < rows * 8; i += 128) {
    uint32_t at = i / 8 * 128 + i % 8 * 16;
    at ^= ((at >> 7) & 7) << 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(tile + at), "l"(source + i / 8 * K + i % 8 * 8));
  }
}

__device__ inline void multiply(float (&d)[8], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(a), "l"(b), "r"(adds));
}

__device__ inline void pin(float (&d)[8]) {
  for (int i = 0; i < 8; i++) asm volatile("" : "+f"(d[i])::"memory");
}

extern "C" __global__ void __launch_bounds__(128)
    warpgroup_gemm(Matrix A, Matrix B, float* C, int K) {
  __shared__ __align__(1024) char tile_a[64 * 128], tile_b[16 * 128];
  uint32_t a = __cvta_generic_to_shared(tile_a), b = __cvta_generic_to_shared(tile_b);
  float d[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int k0 = 0; k0 < K; k0 += 64) {
    fill(a, A + k0, 64, K);
    fill(b, B + k0, 16, K);
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    pin(d);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; k++)
      multiply(d, descriptor(a) + 2 * k, descriptor(b) + 2 * k, k0 > 0 || k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(d);
    __syncthreads();
  }
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = 2 * (threadIdx.x % 4);
  for (int i = 0; i < 8; i++) C[(row + 8 * (i / 2 % 2)) * 16 + 8 * (i / 4) + column + i % 2] = d[i];
}

// C[16,8] = A[16,K] . B[8,K]^T by one warp: two stages of cp.async, ldmatrix and mma.sync.
// K is a multiple of 16; rows of the tiles lie 48 bytes apart.
//   nvcc -ptx -O3 -arch=sm_80 warp_gemm.cu -o warp_gemm.ptx
#include <cuda_bf16.h>
#include <stdint.h>

typedef const __nv_bfloat16* Matrix;

__device__ inline void fill(uint32_t tile, Matrix source, int rows, int K) {
  int t = threadIdx.x;
  if (t < 2 * rows)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;"
                 :: "r"(tile + t / 2 * 48 + t % 2 * 16), "l"(source + t / 2 * K + t % 2 * 8));
}

extern "C" __global__ void warp_gemm(Matrix A, Matrix B, float* C, int K) {
  __shared__ __align__(128) char tile_a[2][16 * 48], tile_b[2][8 * 48];
  uint32_t a = __cvta_generic_to_shared(tile_a), b = __cvta_generic_to_shared(tile_b);
  int t = threadIdx.x;
  float d[4] = {0, 0, 0, 0};
  fill(a, A, 16, K);
  fill(b, B, 8, K);
  asm volatile("cp.async.commit_group;");
  for (int k0 = 0, stage = 0; k0 < K; k0 += 16, stage ^= 1) {
    if (k0 + 16 < K) {
      fill(a + (stage ^ 1) * 16 * 48, A + k0 + 16, 16, K);
      fill(b + (stage ^ 1) * 8 * 48, B + k0 + 16, 8, K);
    }
    asm volatile("cp.async.commit_group; cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    uint32_t x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(a + stage * 16 * 48 + t % 16 * 48 + t / 16 * 16));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(b + stage * 8 * 48 + t % 8 * 48 + t / 8 % 2 * 16));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncwarp();
  }
  for (int i = 0; i < 4; i++) C[(t / 4 + 8 * (i / 2)) * 8 + 2 * (t % 4) + i % 2] = d[i];
}

// C[64,N] = A[64,K] . B[N,K]^T: A in e4m3 goes from global memory into registers, B in e5m2 by 1-D
// bulk copies, one a row, into rows with the 128-byte swizzle by hand-written permutation: it lands
// in a plain buffer first, and the warpgroup rewrites it. f16 result, N = 32 a CTA.
#include "warpgroup.cuh"

constexpr int N = 32, DEPTH = 128;

extern "C" __global__ void __launch_bounds__(128)
    wgmma_fp8(const uint8_t* a, const uint8_t* b, __half* c, int n, int k) {
  __shared__ __align__(1024) uint4 swizzled[N * DEPTH / 16];
  __shared__ __align__(128) uint4 plain[N * DEPTH / 16];
  __shared__ uint64_t landed;
  uint32_t barrier = shared_address(&landed);
  int t = threadIdx.x, row = t / 32 * 16 + t % 32 / 4, q = t % 4;
  if (t == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();
  float d[16];
  for (int k0 = 0, parity = 0; k0 < k; k0 += DEPTH, parity ^= 1) {
    if (t == 0) expect(barrier, N * DEPTH);
    __syncwarp();
    if (t < N)
      load_bytes(shared_address(plain + t * 8), b + (blockIdx.x * N + t) * k + k0, DEPTH, barrier);
    wait(barrier, parity);
    for (int i = t; i < N * 8; i += 128) swizzled[i ^ i / 8 % 8] = plain[i];
    fence_async_shared();
    __syncthreads();
    uint32_t fragments[4][4];
    for (int i = 0; i < 16; i++) {
      int at = (row + i % 2 * 8) * k + k0 + i / 4 * 32 + i / 2 % 2 * 16 + q * 4;
      fragments[i / 4][i % 4] = *(const uint32_t*)(a + at);
    }
    pin(d);
    fence_registers();
#pragma unroll
    for (int i = 0; i < 4; i++)
      multiply_64x32x32(d, fragments[i], swizzled_rows(shared_address(swizzled)) + 2 * i,
                        k0 > 0 || i > 0);
    commit_group();
    wait_group<0>();
    pin(d);
    __syncthreads();
  }
  for (int i = 0; i < 16; i += 2) {
    int at = (row + i / 2 % 2 * 8) * n + blockIdx.x * N + i / 4 * 8 + 2 * q;
    *(__half2*)(c + at) = __floats2half2_rn(d[i], d[i + 1]);
  }
}

// C[M,N] = scale * (A[M,K] . B[K,N]), A in e4m3 along K, B in e5m2 along N (transposed for the tensor
// core), f16 accumulators; one 64x96 tile a CTA, one warpgroup that does everything in turn. The
// accumulator of 64 rows lies in 16 lanes of each quarter. f16 result.
#include "tensor_core.cuh"

constexpr int TILE_M = 64, TILE_N = 96, DEPTH = 128, BYTES_A = TILE_M * DEPTH;
constexpr int BYTES_B = 128 * DEPTH;
constexpr uint32_t SHAPE = 0 << 4 | 0 << 7 | 1 << 10 | 1 << 16 | TILE_N / 8 << 17 | TILE_M / 16 << 24;

// Rows of K, each 128 bytes of N; eight rows of K 1024 bytes apart.
DEVICE uint64_t swizzled_columns(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

// 32 columns of 16 lanes, as the fragments of an m16n8 accumulator.
DEVICE void load_fragments(uint32_t (&r)[16], uint32_t from) {
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x4.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
               "%11, %12, %13, %14, %15}, [%16];\ntcgen05.wait::ld.sync.aligned;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
                 "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]),
                 "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
               : "r"(from)
               : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
    tcgen05_fp8(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                __half* c, int n, int k, float scale) {
  __shared__ __align__(1024) char tile_a[BYTES_A], tile_b[BYTES_B];
  __shared__ uint64_t landed, read;
  __shared__ uint32_t slot;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    init_barrier(shared_address(&landed), 1);
    init_barrier(shared_address(&read), 1);
    fence_barrier_init();
  }
  if (warp == 0) allocate<1>(shared_address(&slot), 128);
  fence_before();
  __syncthreads();
  fence_after();
  uint32_t accumulator = slot;
  for (int k0 = 0, parity = 0; k0 < k; k0 += DEPTH, parity ^= 1) {
    if (threadIdx.x == 0) {
      expect(shared_address(&landed), BYTES_A + BYTES_B);
      load_tile(shared_address(tile_a), &a, k0, blockIdx.y * TILE_M, shared_address(&landed));
      load_tile(shared_address(tile_b), &b, blockIdx.x * TILE_N, k0, shared_address(&landed));
      wait(shared_address(&landed), parity);
      fence_after();
      uint64_t x = swizzled_rows(shared_address(tile_a));
      uint64_t y = swizzled_columns(shared_address(tile_b));
      for (int i = 0; i < DEPTH / 32; i++)
        multiply_fp8(accumulator, x + 2 * i, y + 256 * i, SHAPE, {k0 > 0 || i > 0});
      commit_products(shared_address(&read));
    }
    wait(shared_address(&read), parity);
    __syncthreads();
  }
  fence_after();
  for (int part = 0; part < TILE_N / 32; part++) {
    uint32_t v[16];
    load_fragments(v, accumulator + (warp * 32 << 16) + part * 32);
    for (int i = 0; i < 16; i++) {
      int row = blockIdx.y * TILE_M + warp * 16 + lane / 4 + i / 2 % 2 * 8;
      int column = blockIdx.x * TILE_N + part * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = __half2float(__ushort_as_half((unsigned short)v[i]));
      c[row * n + column] = __float2half_rn(sum * scale);
    }
  }
  fence_before();
  __syncthreads();
  if (warp == 0) deallocate<1>(accumulator, 128);
}

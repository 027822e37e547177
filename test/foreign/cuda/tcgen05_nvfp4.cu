// C[M,N] = alpha * (A . SFA)[M,K] . (B . SFB)[N,K]^T in nvfp4: packed e2m1 by TMA as bytes, a ue4m3
// scale for 16 of K, blocks of scales by one tensor copy of their own maps, then tcgen05.cp. bf16
// result, 128x64 a CTA; the scales of B's 64 rows are the first half of each block.
#include "tensor_core.cuh"

constexpr int TILE_M = 128, TILE_N = 64, DEPTH = 256, COLUMNS = 128, SCALES = DEPTH / 64 * 512;
constexpr int BYTES_A = TILE_M * DEPTH / 2, BYTES_B = TILE_N * DEPTH / 2;
constexpr uint32_t SHAPE = 1 << 7 | 1 << 10 | TILE_N / 8 << 17 | TILE_M / 128 << 27;

struct Tiles {
  alignas(1024) char a[BYTES_A];
  alignas(1024) char b[BYTES_B];
  alignas(128) char scales_a[SCALES];
  alignas(128) char scales_b[SCALES];
};

struct Arguments {
  CUtensorMap a, b, scales_a, scales_b;
  __nv_bfloat16* c;
  const float* alpha;
  int n, k;
};

extern "C" __global__ void __launch_bounds__(160) tcgen05_nvfp4(const __grid_constant__ Arguments p) {
  extern __shared__ __align__(1024) char dynamic[];
  __shared__ uint64_t full, read, done;
  __shared__ uint32_t slot;
  Tiles* tiles = (Tiles*)dynamic;
  int warp = threadIdx.x / 32, steps = p.k / DEPTH;
  if (threadIdx.x == 128) {
    init_barrier(shared_address(&full), 1);
    init_barrier(shared_address(&read), 1);
    init_barrier(shared_address(&done), 1);
    fence_barrier_init();
  }
  if (warp == 4) {
    __syncwarp();
    allocate<1>(shared_address(&slot), COLUMNS);
  }
  fence_before();
  __syncthreads();
  fence_after();
  uint32_t accumulator = slot, scales_a = accumulator + TILE_N, scales_b = scales_a + 16;
  if (threadIdx.x == 128)
    for (int step = 0; step < steps; step++) {
      uint32_t barrier = shared_address(&full);
      expect(barrier, sizeof(Tiles));
      load_tile(shared_address(tiles->a), &p.a, step * DEPTH / 2, blockIdx.y * TILE_M, barrier);
      load_tile(shared_address(tiles->b), &p.b, step * DEPTH / 2, blockIdx.x * TILE_N, barrier);
      int at_a = (blockIdx.y * steps + step) * 8, at_b = (blockIdx.x * steps + step) * 8;
      load_tile(shared_address(tiles->scales_a), &p.scales_a, 0, at_a, barrier);
      load_tile(shared_address(tiles->scales_b), &p.scales_b, 0, at_b, barrier);
      wait(barrier, step & 1);
      fence_after();
      for (int i = 0; i < DEPTH / 64; i++) {
        copy_scales(scales_a + 4 * i, plain_rows(shared_address(tiles->scales_a) + 512 * i));
        copy_scales(scales_b + 4 * i, plain_rows(shared_address(tiles->scales_b) + 512 * i));
      }
      uint64_t a = swizzled_rows(shared_address(tiles->a)), b = swizzled_rows(shared_address(tiles->b));
      for (int i = 0; i < DEPTH / 64; i++)
        multiply_nvfp4(accumulator, a + 2 * i, b + 2 * i, SHAPE, scales_a + 4 * i, scales_b + 4 * i,
                       {step > 0 || i > 0});
      bool last = step + 1 == steps;
      commit_products(shared_address(last ? &done : &read));
      if (!last) wait(shared_address(&read), step & 1);
    }
  if (warp < 4) {
    wait(shared_address(&done), 0);
    fence_after();
    float alpha = *p.alpha;
    __nv_bfloat16* to = p.c + (blockIdx.y * TILE_M + threadIdx.x) * p.n + blockIdx.x * TILE_N;
    for (int part = 0; part < TILE_N / 32; part++) {
      float v[32];
      load_columns(v, accumulator + (warp * 32 << 16) + part * 32);
      for (int i = 0; i < 32; i += 2)
        *(__nv_bfloat162*)(to + part * 32 + i) = __floats2bfloat162_rn(alpha * v[i], alpha * v[i + 1]);
    }
    fence_before();
  }
  __syncthreads();
  fence_after();
  if (warp == 4) {
    __syncwarp();
    deallocate<1>(accumulator, COLUMNS);
  }
}

// C[M,N] = A[M,K] . B[N,K]^T in bf16: persistent, 128x64 a tile, warp-specialised. One warpgroup
// gives its registers away and fills a ring of three stages by TMA, two multiply 64 rows each with
// wgmma, one product in flight, and send the tile through stmatrix and a TMA store.
#include "warpgroup.cuh"

constexpr int TILE_M = 128, TILE_N = 64, DEPTH = 64, STAGES = 3, CONSUMERS = 2;
constexpr int BYTES_A = TILE_M * DEPTH * 2, BYTES_B = TILE_N * DEPTH * 2;
constexpr int STAGE = BYTES_A + BYTES_B, STAGED = TILE_M * TILE_N * 2;

struct Shared {
  char stages[STAGES][STAGE];
  char staged[STAGED];
};

struct Tiles {
  int across, count, steps;
};

DEVICE void produce(const CUtensorMap* a, const CUtensorMap* b, uint32_t stages, uint32_t full,
                    uint32_t empty, Tiles tiles) {
  Ring ring(1);
  for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x)
    for (int step = 0; step < tiles.steps; step++) {
      uint32_t stage = stages + ring.stage * STAGE, barrier = full + ring.stage * 8;
      wait(empty + ring.stage * 8, ring.parity);
      expect(barrier, STAGE);
      load_tile(stage, a, step * DEPTH, tile / tiles.across * TILE_M, barrier);
      load_tile(stage + BYTES_A, b, step * DEPTH, tile % tiles.across * TILE_N, barrier);
      ring.next<STAGES>();
    }
}

DEVICE void store_matrices(uint32_t to, const float* d) {
  uint32_t r[4];
  for (int i = 0; i < 4; i++)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r[i]) : "f"(d[2 * i + 1]), "f"(d[2 * i]));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

DEVICE void store(const CUtensorMap* c, const float (&d)[32], uint32_t staged, int x, int y,
                  int group) {
  int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
  if (threadIdx.x % 128 == 0) wait_stores_read();
  asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
  for (int i = 0; i < 4; i++) {
    uint32_t at = row * 128 + i * 32 + lane / 16 * 16;
    store_matrices(staged + (at ^ (row % 8) << 4), d + i * 8);
  }
  fence_async_shared();
  asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
  if (threadIdx.x % 128 == 0) {
    store_tile(c, x, y, staged);
    commit_stores();
  }
}

DEVICE void consume(const CUtensorMap* c, uint32_t stages, uint32_t staged, uint32_t full,
                    uint32_t empty, Tiles tiles, int group) {
  Ring ring(0);
  for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
    float d[32];
    int previous = -1;
    for (int step = 0; step < tiles.steps; step++) {
      wait(full + ring.stage * 8, ring.parity);
      uint32_t stage = stages + ring.stage * STAGE;
      uint64_t x = swizzled_rows(stage + (group - 1) * 64 * 128);
      uint64_t y = swizzled_rows(stage + BYTES_A);
      pin(d);
      fence_registers();
#pragma unroll
      for (int k = 0; k < DEPTH / 16; k++)
        multiply_64x64x16(d, x + 2 * k, y + 2 * k, step > 0 || k > 0);
      commit_group();
      wait_group<1>();
      if (previous >= 0 && threadIdx.x % 128 == 0) arrive(empty + previous * 8);
      previous = ring.stage;
      ring.next<STAGES>();
    }
    wait_group<0>();
    pin(d);
    if (threadIdx.x % 128 == 0) arrive(empty + previous * 8);
    store(c, d, staged + (group - 1) * 64 * 128, tile % tiles.across * TILE_N,
          tile / tiles.across * TILE_M + (group - 1) * 64, group);
  }
  if (threadIdx.x % 128 == 0) wait_stores_read();
}

extern "C" __global__ void __launch_bounds__(128 * (1 + CONSUMERS), 1)
    wgmma_ring(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
               const __grid_constant__ CUtensorMap c, Tiles tiles) {
  extern __shared__ __align__(1024) char dynamic[];
  __shared__ uint64_t barriers[2 * STAGES];
  uint32_t shared = (shared_address(dynamic) + 1023) & ~1023u;
  uint32_t full = shared_address(barriers), empty = full + STAGES * 8;
  int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    prefetch_map(&a), prefetch_map(&b), prefetch_map(&c);
    for (int i = 0; i < STAGES; i++) {
      init_barrier(full + i * 8, 1);
      init_barrier(empty + i * 8, CONSUMERS);
    }
    fence_barrier_init();
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x < 32 && elect()) produce(&a, &b, shared, full, empty, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(&c, shared, shared + offsetof(Shared, staged), full, empty, tiles, group);
  }
}

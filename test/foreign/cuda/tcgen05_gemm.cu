// C[M,N] = A[M,K] . B[N,K]^T, bf16 to f32: a 128x64 tile a CTA. A thread of warp 0 fills a ring of
// four stages by TMA, one of warp 1 multiplies into tensor memory, warp 2 holds the allocation, and
// warps 4 to 7 write the tile, two rows of 128-bit stores a lane.
#include "tensor_core.cuh"

constexpr int TILE_M = 128, TILE_N = 64, DEPTH = 64, STAGES = 4, COLUMNS = 64;
constexpr int BYTES_A = TILE_M * DEPTH * 2, STAGE = BYTES_A + TILE_N * DEPTH * 2;
constexpr uint32_t SHAPE = 1 << 4 | 1 << 7 | 1 << 10 | TILE_N / 8 << 17 | TILE_M / 16 << 24;

struct Barriers {
  uint64_t full[STAGES], empty[STAGES], done;
  uint32_t tensor_memory;
};

DEVICE void produce(const CUtensorMap* a, const CUtensorMap* b, uint32_t stages, Barriers* shared,
                    int steps) {
  Ring ring(1);
  for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
    uint32_t stage = stages + ring.stage * STAGE, full = shared_address(&shared->full[ring.stage]);
    wait(shared_address(&shared->empty[ring.stage]), ring.parity);
    expect(full, STAGE);
    load_tile(stage, a, step * DEPTH, blockIdx.y * TILE_M, full);
    load_tile(stage + BYTES_A, b, step * DEPTH, blockIdx.x * TILE_N, full);
  }
}

DEVICE void multiply(uint32_t accumulator, uint32_t stages, Barriers* shared, int steps) {
  Ring ring(0);
  for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
    wait(shared_address(&shared->full[ring.stage]), ring.parity);
    fence_after();
    uint64_t a = swizzled_rows(stages + ring.stage * STAGE);
    uint64_t b = swizzled_rows(stages + ring.stage * STAGE + BYTES_A);
    for (int k = 0; k < DEPTH / 16; k++)
      multiply_f16(accumulator, a + 2 * k, b + 2 * k, SHAPE, {step > 0 || k > 0});
    commit_products(shared_address(&shared->empty[ring.stage]));
  }
  commit_products(shared_address(&shared->done));
}

DEVICE void write(float* c, int n, uint32_t accumulator) {
  int quarter = threadIdx.x / 32 % 4, row = blockIdx.y * TILE_M + threadIdx.x % 128;
  for (int half = 0; half < TILE_N / 32; half++) {
    float v[32];
    load_columns(v, accumulator + (quarter * 32 << 16) + half * 32);
    float4* to = (float4*)(c + row * n + blockIdx.x * TILE_N + half * 32);
    for (int i = 0; i < 8; i++) to[i] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    tcgen05_gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                 float* c, int n, int k) {
  extern __shared__ __align__(1024) char stages[];
  __shared__ Barriers shared;
  int warp = threadIdx.x / 32, steps = k / DEPTH;
  if (warp == 0 && elect()) {
    for (int i = 0; i < STAGES; i++) {
      init_barrier(shared_address(&shared.full[i]), 1);
      init_barrier(shared_address(&shared.empty[i]), 1);
    }
    init_barrier(shared_address(&shared.done), 1);
    fence_barrier_init();
  }
  if (warp == 2) allocate<1>(shared_address(&shared.tensor_memory), COLUMNS);
  fence_before();
  __syncthreads();
  fence_after();
  uint32_t accumulator = shared.tensor_memory;
  if (warp == 0 && elect()) produce(&a, &b, shared_address(stages), &shared, steps);
  if (warp == 1 && elect()) multiply(accumulator, shared_address(stages), &shared, steps);
  if (warp >= 4) {
    wait(shared_address(&shared.done), 0);
    fence_after();
    write(c, n, accumulator);
    fence_before();
  }
  __syncthreads();
  fence_after();
  if (warp == 2) deallocate<1>(accumulator, COLUMNS);
}

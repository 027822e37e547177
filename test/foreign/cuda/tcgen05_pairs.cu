// C[M,N] = A[M,K] . B[N,K]^T, f16 to f32: clusters of four CTAs, two pairs, a pair multiplies 256x128
// as one. Each CTA loads its 128 rows of A for itself; of the 64 columns of B that a CTA of either
// pair needs, the two CTAs of the same place load half each and multicast it to both. A stage is
// free when both pairs have read it. Columns of C by a stride; the last clusters hang over the edge.
#include "tensor_core.cuh"

constexpr int TILE_N = 128, DEPTH = 64, STAGES = 3, COLUMNS = 128;
constexpr int BYTES_A = 128 * DEPTH * 2, BYTES_B = TILE_N / 2 * DEPTH * 2, STAGE = BYTES_A + BYTES_B;
constexpr uint32_t SHAPE = 1 << 4 | TILE_N / 8 << 17 | 256 / 16 << 24;

struct Barriers {
  uint64_t full[STAGES], empty[STAGES], done;
  uint32_t tensor_memory;
};

DEVICE void load_for_pair(uint32_t to, const CUtensorMap* map, int x, int y, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier)
               : "memory");
}

DEVICE void load_for_pairs(uint32_t to, const CUtensorMap* map, int x, int y, uint32_t barrier,
                           uint16_t ctas) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::"
               "bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(ctas), "l"(0x14F0000000000000)
               : "memory");
}

DEVICE uint32_t leaders(uint32_t barrier) {  // the same barrier of the pair's even CTA
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(barrier), "r"(cluster_rank() & ~1));
  return address;
}

DEVICE void produce(const CUtensorMap* a, const CUtensorMap* b, uint32_t stages, Barriers* shared,
                    int row0, int column0, int steps) {
  int rank = cluster_rank(), place = rank % 2, half = rank / 2;
  Ring ring(1);
  for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
    uint32_t stage = stages + ring.stage * STAGE, full = shared_address(&shared->full[ring.stage]);
    wait_cluster(shared_address(&shared->empty[ring.stage]), ring.parity);
    if (place == 0) expect(full, 2 * STAGE);
    load_for_pair(stage, a, step * DEPTH, row0 + rank * 128, leaders(full));
    load_for_pairs(stage + BYTES_A + half * BYTES_B / 2, b, step * DEPTH,
                   column0 + place * TILE_N / 2 + half * TILE_N / 4, leaders(full), 5 << place);
  }
  // The other pair's last releases must have come before this CTA may go.
  for (int i = 0; i < min(STAGES, steps); i++, ring.next<STAGES>())
    wait_cluster(shared_address(&shared->empty[ring.stage]), ring.parity);
}

DEVICE void multiply(uint32_t accumulator, uint32_t stages, Barriers* shared, int steps) {
  Ring ring(0);
  uint16_t pair = 3 << (cluster_rank() & ~1);
  for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
    wait_cluster(shared_address(&shared->full[ring.stage]), ring.parity);
    fence_after();
    uint64_t a = swizzled_rows(stages + ring.stage * STAGE);
    uint64_t b = swizzled_rows(stages + ring.stage * STAGE + BYTES_A);
    for (int k = 0; k < DEPTH / 16; k++)
      multiply_f16_pair(accumulator, a + 2 * k, b + 2 * k, SHAPE, {step > 0 || k > 0});
    commit_pair(shared_address(&shared->empty[ring.stage]), 15);
  }
  commit_pair(shared_address(&shared->done), pair);
}

DEVICE void write(float* c, int m, int n, int row, int column0, uint32_t accumulator) {
  int quarter = threadIdx.x / 32 % 4;
  for (int part = 0; part < TILE_N / 32; part++) {
    float v[32];
    load_columns(v, accumulator + (quarter * 32 << 16) + part * 32);
    for (int i = 0; i < 32; i++)
      if (row < m && column0 + part * 32 + i < n) c[row * n + column0 + part * 32 + i] = v[i];
  }
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(192)
    tcgen05_pairs(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                  float* c, int m, int n, int k) {
  extern __shared__ __align__(1024) char stages[];
  __shared__ Barriers shared;
  int warp = threadIdx.x / 32, rank = cluster_rank(), steps = (k + DEPTH - 1) / DEPTH;
  int row0 = blockIdx.x / 4 * 512, column0 = blockIdx.y * TILE_N;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      init_barrier(shared_address(&shared.full[i]), 1);
      init_barrier(shared_address(&shared.empty[i]), 2);
    }
    init_barrier(shared_address(&shared.done), 1);
    fence_barrier_init();
  }
  sync_cluster();  // a pair allocates together: both CTAs must have been launched
  if (warp == 1) allocate<2>(shared_address(&shared.tensor_memory), COLUMNS);
  fence_before();
  __syncthreads();
  sync_cluster();
  fence_after();
  uint32_t accumulator = shared.tensor_memory;
  if (warp == 0 && elect()) produce(&a, &b, shared_address(stages), &shared, row0, column0, steps);
  if (warp == 1 && rank % 2 == 0 && elect())
    multiply(accumulator, shared_address(stages), &shared, steps);
  if (warp >= 2) {
    wait_cluster(shared_address(&shared.done), 0);
    fence_after();
    write(c, m, n, row0 + rank * 128 + warp % 4 * 32 + threadIdx.x % 32, column0, accumulator);
    fence_before();
  }
  __syncthreads();
  sync_cluster();
  fence_after();
  if (warp == 1) deallocate<2>(accumulator, COLUMNS);
}

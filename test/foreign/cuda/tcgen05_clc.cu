// C[M,N] = A[M,K] . B[N,K]^T + bias[N], bf16: persistent by cluster launch control. One warp claims
// the next tile while the others work on this one: it cancels a CTA that has not started and takes
// its place. Two accumulators, so that the epilogue of a tile overlaps the products of the next.
#include "tensor_core.cuh"

constexpr int TILE_M = 128, TILE_N = 64, DEPTH = 64, STAGES = 3, COLUMNS = 128, CLAIMS = 2;
constexpr int BYTES_A = TILE_M * DEPTH * 2, STAGE = BYTES_A + TILE_N * DEPTH * 2;
constexpr uint32_t SHAPE = 1 << 4 | 1 << 7 | 1 << 10 | TILE_N / 8 << 17 | TILE_M / 16 << 24;
constexpr int READERS = 1 + 1 + 1 + 4;  // loader, multiplier, claimer, epilogue warps

struct Shared {
  alignas(16) uint4 claims[CLAIMS];
  uint64_t full[STAGES], empty[STAGES], ready[2], drained[2], claimed[CLAIMS], taken[CLAIMS];
  uint32_t tensor_memory;
};

struct Tile {
  int x, y;
  bool there;
};

DEVICE void claim(uint32_t response, uint32_t barrier) {
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
               "[%0], [%1];" ::"r"(response), "r"(barrier)
               : "memory");
}

DEVICE Tile answer(uint32_t response) {
  Tile tile = {};
  uint32_t there;
  asm volatile("{\n.reg .pred p;\n.reg .b128 r;\n.reg .b32 z;\n"
               "ld.shared.b128 r, [%3];\n"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n"
               "selp.u32 %2, 1, 0, p;\n"
               "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, z, _}, r;\n}"
               : "+r"(tile.x), "+r"(tile.y), "=r"(there)
               : "r"(response)
               : "memory");
  tile.there = there;
  return tile;
}

// The next tile, for one thread or a whole warp; the response may be overwritten afterwards.
template <bool WARP>
DEVICE Tile next_tile(Shared* shared, Ring& ring) {
  wait(shared_address(&shared->claimed[ring.stage]), ring.parity);
  Tile tile = answer(shared_address(&shared->claims[ring.stage]));
  asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
  if (WARP) __syncwarp();
  if (!WARP || elect()) arrive(shared_address(&shared->taken[ring.stage]));
  ring.next<CLAIMS>();
  return tile;
}

DEVICE void claim_tiles(Shared* shared) {
  Ring ring(0), free(1);
  for (Tile tile = {0, 0, true}; tile.there;) {
    wait(shared_address(&shared->taken[free.stage]), free.parity);
    asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::
                     : "memory");
    expect(shared_address(&shared->claimed[free.stage]), 16);
    claim(shared_address(&shared->claims[free.stage]), shared_address(&shared->claimed[free.stage]));
    free.next<CLAIMS>();
    tile = next_tile<false>(shared, ring);
  }
}

DEVICE void produce(const CUtensorMap* a, const CUtensorMap* b, uint32_t stages, Shared* shared,
                    Tile tile, int steps) {
  Ring ring(1), claims(0);
  for (; tile.there; tile = next_tile<false>(shared, claims))
    for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
      uint32_t stage = stages + ring.stage * STAGE;
      uint32_t full = shared_address(&shared->full[ring.stage]);
      wait(shared_address(&shared->empty[ring.stage]), ring.parity);
      expect(full, STAGE);
      load_tile(stage, a, step * DEPTH, tile.y * TILE_M, full);
      load_tile(stage + BYTES_A, b, step * DEPTH, tile.x * TILE_N, full);
    }
}

DEVICE void multiply(uint32_t stages, Shared* shared, Tile tile, int steps) {
  Ring ring(0), claims(0), accumulators(1);
  for (; tile.there; tile = next_tile<false>(shared, claims), accumulators.next<2>()) {
    wait(shared_address(&shared->drained[accumulators.stage]), accumulators.parity);
    fence_after();
    uint32_t accumulator = shared->tensor_memory + accumulators.stage * TILE_N;
    for (int step = 0; step < steps; step++, ring.next<STAGES>()) {
      wait(shared_address(&shared->full[ring.stage]), ring.parity);
      fence_after();
      uint64_t a = swizzled_rows(stages + ring.stage * STAGE);
      uint64_t b = swizzled_rows(stages + ring.stage * STAGE + BYTES_A);
      for (int k = 0; k < DEPTH / 16; k++)
        multiply_f16(accumulator, a + 2 * k, b + 2 * k, SHAPE, {step > 0 || k > 0});
      commit_products(shared_address(&shared->empty[ring.stage]));
    }
    commit_products(shared_address(&shared->ready[accumulators.stage]));
  }
}

DEVICE void write(__nv_bfloat16* c, const float* bias, int n, Shared* shared, Tile tile) {
  Ring claims(0), accumulators(0);
  int quarter = threadIdx.x / 32 % 4;
  for (; tile.there; tile = next_tile<true>(shared, claims), accumulators.next<2>()) {
    wait(shared_address(&shared->ready[accumulators.stage]), accumulators.parity);
    fence_after();
    uint32_t from = shared->tensor_memory + accumulators.stage * TILE_N + (quarter * 32 << 16);
    int row = tile.y * TILE_M + quarter * 32 + threadIdx.x % 32, column = tile.x * TILE_N;
    for (int part = 0; part < TILE_N / 32; part++) {
      float v[32];
      load_columns(v, from + part * 32);
      for (int i = 0; i < 32; i++) {
        int at = column + part * 32 + i;
        c[row * n + at] = __float2bfloat16_rn(v[i] + __ldg(bias + at));
      }
    }
    fence_before();
    __syncwarp();
    if (elect()) arrive(shared_address(&shared->drained[accumulators.stage]));
  }
}

extern "C" __global__ void __launch_bounds__(256)
    tcgen05_clc(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                const float* bias, __nv_bfloat16* c, int n, int k) {
  extern __shared__ __align__(1024) char dynamic[];
  __shared__ Shared shared;
  uint32_t stages = shared_address(dynamic);
  int warp = threadIdx.x / 32, steps = k / DEPTH;
  Tile first = {(int)blockIdx.x, (int)blockIdx.y, true};
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      init_barrier(shared_address(&shared.full[i]), 1);
      init_barrier(shared_address(&shared.empty[i]), 1);
    }
    for (int i = 0; i < 2; i++) {
      init_barrier(shared_address(&shared.ready[i]), 1);
      init_barrier(shared_address(&shared.drained[i]), 4);
      init_barrier(shared_address(&shared.claimed[i]), 1);
      init_barrier(shared_address(&shared.taken[i]), READERS);
    }
    fence_barrier_init();
  }
  if (warp == 3) allocate<1>(shared_address(&shared.tensor_memory), COLUMNS);
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == 0 && elect()) produce(&a, &b, stages, &shared, first, steps);
  if (warp == 1 && elect()) multiply(stages, &shared, first, steps);
  if (warp == 2 && elect()) claim_tiles(&shared);
  if (warp >= 4) write(c, bias, n, &shared, first);
  __syncthreads();
  if (warp == 3) deallocate<1>(shared.tensor_memory, COLUMNS);
}

// C[M,N] = (A . SFA)[M,K] . (B . SFB)[N,K]^T in mxfp8: e4m3 by TMA, a ue8m0 scale for 32 of K. The
// scales lie in global memory as the tensor core wants them, blocks of 128 rows and four scales in
// 512 bytes; 1-D bulk copies and tcgen05.cp bring them into tensor memory. 128x128 a CTA.
#include "tensor_core.cuh"

constexpr int TILE = 128, DEPTH = 128, STAGES = 2, COLUMNS = 256, SCALES = 512;
constexpr int BYTES = TILE * DEPTH, STAGE = 2 * BYTES + 2 * SCALES;
constexpr uint32_t SHAPE = TILE / 8 << 17 | 1 << 23 | TILE / 128 << 27;

DEVICE uint32_t with_scale(int which) { return SHAPE | which << 4 | which << 29; }

DEVICE void load(uint32_t stage, const CUtensorMap* a, const CUtensorMap* b, const uint8_t* scales_a,
                 const uint8_t* scales_b, int step, int steps, uint32_t barrier) {
  expect(barrier, STAGE);
  load_tile(stage, a, step * DEPTH, blockIdx.y * TILE, barrier);
  load_tile(stage + BYTES, b, step * DEPTH, blockIdx.x * TILE, barrier);
  const uint8_t* from_a = scales_a + (blockIdx.y * steps + step) * SCALES;
  const uint8_t* from_b = scales_b + (blockIdx.x * steps + step) * SCALES;
  load_bytes(stage + 2 * BYTES, from_a, SCALES, barrier);
  load_bytes(stage + 2 * BYTES + SCALES, from_b, SCALES, barrier);
}

DEVICE void multiply(uint32_t stage, uint32_t accumulator, bool first) {
  uint32_t scales_a = accumulator + TILE, scales_b = scales_a + 4;
  copy_scales(scales_a, plain_rows(stage + 2 * BYTES));
  copy_scales(scales_b, plain_rows(stage + 2 * BYTES + SCALES));
  uint64_t a = swizzled_rows(stage), b = swizzled_rows(stage + BYTES);
  for (int i = 0; i < DEPTH / 32; i++)
    multiply_mxfp8(accumulator, a + 2 * i, b + 2 * i, with_scale(i), scales_a, scales_b,
                   {!first || i > 0});
}

extern "C" __global__ void __launch_bounds__(128)
    tcgen05_mxfp8(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                  const uint8_t* scales_a, const uint8_t* scales_b, float* c, int n, int k) {
  extern __shared__ __align__(1024) char dynamic[];
  __shared__ uint64_t full[STAGES], read[STAGES], done;
  __shared__ uint32_t slot;
  uint32_t stages = shared_address(dynamic);
  int warp = threadIdx.x / 32, steps = k / DEPTH;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      init_barrier(shared_address(full + i), 1);
      init_barrier(shared_address(read + i), 1);
    }
    init_barrier(shared_address(&done), 1);
    fence_barrier_init();
  }
  if (warp == 0) allocate<1>(shared_address(&slot), COLUMNS);
  fence_before();
  __syncthreads();
  fence_after();
  uint32_t accumulator = slot;
  if (warp == 0 && elect()) {
    Ring ahead(1), ring(0);
    for (int step = 0; step < steps + 1; step++) {
      if (step < steps) {
        wait(shared_address(read + ahead.stage), ahead.parity);
        load(stages + ahead.stage * STAGE, &a, &b, scales_a, scales_b, step, steps,
             shared_address(full + ahead.stage));
        ahead.next<STAGES>();
      }
      if (step == 0) continue;
      wait(shared_address(full + ring.stage), ring.parity);
      fence_after();
      multiply(stages + ring.stage * STAGE, accumulator, step == 1);
      commit_products(shared_address(step == steps ? &done : read + ring.stage));
      ring.next<STAGES>();
    }
  }
  __syncwarp();
  wait(shared_address(&done), 0);
  fence_after();
  float* to = c + (blockIdx.y * TILE + threadIdx.x) * n + blockIdx.x * TILE;
  for (int part = 0; part < TILE / 32; part++) {
    float v[32];
    load_columns(v, accumulator + (warp * 32 << 16) + part * 32);
    for (int i = 0; i < 32; i++) to[part * 32 + i] = v[i];
  }
  fence_before();
  __syncthreads();
  if (warp == 0) deallocate<1>(accumulator, COLUMNS);
}

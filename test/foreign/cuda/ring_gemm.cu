// out[M,N] = relu(A[M,K] . B[K,N] + bias[N]) in f16: any M, N and K that are multiples of 8.
// 64x64 a CTA, four warps, a ring of three stages of cp.async that fills the edges with zeros;
// ldmatrix (A) and ldmatrix.trans (B, whose rows run along N) feed mma.sync.
#include "device.cuh"

struct Problem {
  const __nv_bfloat16* a;
  const __nv_bfloat16* b;
  const float* bias;
  __half* out;
  int m, n, k;
};

constexpr int TILE = 64, DEPTH = 32, STAGES = 3;
constexpr int ROW_A = DEPTH * 2 + 16, ROW_B = TILE * 2 + 16;
constexpr int BYTES_A = TILE * ROW_A, STAGE = BYTES_A + DEPTH * ROW_B;

DEVICE void fill(uint32_t stage, const Problem& p, int row0, int column0, int k0) {
  for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += 128) {
    int row = i / 4, part = i % 4, inside = row0 + row < p.m && k0 + part * 8 < p.k;
    const __nv_bfloat16* from = inside ? p.a + (row0 + row) * p.k + k0 + part * 8 : p.a;
    copy16(stage + row * ROW_A + part * 16, from, inside ? 16 : 0);
  }
  for (int i = threadIdx.x; i < DEPTH * TILE / 8; i += 128) {
    int row = i / 8, part = i % 8, inside = k0 + row < p.k && column0 + part * 8 < p.n;
    const __nv_bfloat16* from = inside ? p.b + (k0 + row) * p.n + column0 + part * 8 : p.b;
    copy16(stage + BYTES_A + row * ROW_B + part * 16, from, inside ? 16 : 0);
  }
}

DEVICE void multiply_stage(float (&d)[2][4][4], uint32_t stage, int warp, int lane) {
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    uint32_t a[2][4], b[2][4];
    for (int i = 0; i < 2; i++)
      load_matrices(a[i], stage + (warp / 2 * 32 + i * 16 + lane % 16) * ROW_A + k * 2 +
                              lane / 16 * 16);
    for (int j = 0; j < 2; j++)
      load_matrices_transposed(b[j], stage + BYTES_A + (k + lane % 16) * ROW_B +
                                         (warp % 2 * 32 + j * 16 + lane / 16 * 8) * 2);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 4; j++)
        multiply_bf16(d[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
  }
}

extern "C" __global__ void __launch_bounds__(128) ring_gemm(Problem p) {
  extern __shared__ __align__(128) char ring[];
  uint32_t base = shared_address(ring);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = (p.k + DEPTH - 1) / DEPTH;
  int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
  float d[2][4][4] = {};
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < steps) fill(base + s * STAGE, p, row0, column0, s * DEPTH);
    commit_copies();
  }
  for (int s = 0; s < steps; s++) {
    wait_copies<STAGES - 2>();
    __syncthreads();
    int ahead = s + STAGES - 1;
    if (ahead < steps) fill(base + ahead % STAGES * STAGE, p, row0, column0, ahead * DEPTH);
    commit_copies();
    multiply_stage(d, base + s % STAGES * STAGE, warp, lane);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++)
      for (int half = 0; half < 2; half++) {
        int row = row0 + warp / 2 * 32 + i * 16 + half * 8 + lane / 4;
        int column = column0 + warp % 2 * 32 + j * 8 + lane % 4 * 2;
        if (row >= p.m || column >= p.n) continue;
        float2 bias = *reinterpret_cast<const float2*>(p.bias + column);
        __half2 sum = __floats2half2_rn(d[i][j][half * 2] + bias.x, d[i][j][half * 2 + 1] + bias.y);
        sum = __hmax2(sum, __float2half2_rn(0.f));
        *reinterpret_cast<__half2*>(p.out + row * p.n + column) = sum;
      }
}

// out[M,N] = clamp(round(scale[n] * (A[M,K] . B[N,K]^T)) + zero_point) in s8; operands s8, K a
// multiple of 4. One thread an element, scales in constant data that the module initialises, tiles
// in static shared memory filled word by word.
#include <stdint.h>

constexpr int TILE = 16, WORDS = 8, COLUMNS = 32;

__constant__ float scales[COLUMNS] = {
    0.011f, 0.023f, 0.005f, 0.017f, 0.031f, 0.007f, 0.013f, 0.019f, 0.029f, 0.003f, 0.037f,
    0.041f, 0.009f, 0.015f, 0.021f, 0.027f, 0.033f, 0.039f, 0.002f, 0.004f, 0.006f, 0.008f,
    0.010f, 0.012f, 0.014f, 0.016f, 0.018f, 0.020f, 0.022f, 0.024f, 0.026f, 0.028f};
__device__ int saturated = 0;

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    dp4a_gemm(const int* a, const int* b, int8_t* out, int* clipped, int n, int words,
                   short zero_point) {
  __shared__ int tile_a[TILE][WORDS + 1], tile_b[TILE][WORDS + 1];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  int sum = 0;
  for (int k0 = 0; k0 < words; k0 += WORDS) {
    int part = x % WORDS, inside = k0 + part < words;
    if (x < WORDS)
      tile_a[y][part] = inside ? __ldg(a + row * words + k0 + part) : 0;
    else
      tile_b[y][part] = inside ? __ldg(b + (blockIdx.x * TILE + y) * words + k0 + part) : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WORDS; i++) sum = __dp4a(tile_a[y][i], tile_b[x][i], sum);
    __syncthreads();
  }
  int rounded = __float2int_rn((float)sum * scales[column]) + zero_point;
  int limited = max(-128, min(127, rounded));
  out[row * n + column] = (int8_t)limited;
  int clips = __syncthreads_count(limited != rounded);
  if (x == 0 && y == 0) {
    atomicAdd(&saturated, clips);
    atomicAdd(clipped, clips);
  }
}

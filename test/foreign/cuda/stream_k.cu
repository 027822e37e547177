// C[M,N] = A[M,K] . B[N,K]^T in tf32 by stream-K: the steps of all tiles are one line that the CTAs
// share evenly. A CTA that ends inside a tile leaves its part in the workspace and releases the
// tile's flag; the CTA that has the tile's first step acquires the others' parts and adds them.
#include <stdint.h>

constexpr int M = 16, N = 32, DEPTH = 8;

struct Line {
  int tiles_n, steps, per_cta, total;
};

__device__ __forceinline__ uint32_t tf32(float x) {
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ void release(int* flag) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
}

__device__ __forceinline__ int acquire(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ __forceinline__ void step(float (&d)[4], const float* a, const float* b, int K) {
  int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  uint32_t x[4] = {tf32(a[g * K + q]), tf32(a[(g + 8) * K + q]), tf32(a[g * K + q + 4]),
                   tf32(a[(g + 8) * K + q + 4])};
  uint32_t y[2] = {tf32(b[g * K + q]), tf32(b[g * K + q + 4])};
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

extern "C" __global__ void __launch_bounds__(128)
    stream_k(const float* a, const float* b, float* c, float4* parts, int* flags, Line line) {
  int warp = threadIdx.x / 32, K = line.steps * DEPTH, ldc = line.tiles_n * N;
  int begin = blockIdx.x * line.per_cta, end = min(begin + line.per_cta, line.total);
  while (begin < end) {
    int tile = begin / line.steps, first = begin - tile * line.steps;
    int last = min(line.steps, first + end - begin);
    int row = tile / line.tiles_n * M, column = tile % line.tiles_n * N + warp * 8;
    float d[4] = {0, 0, 0, 0};
    for (int s = first; s < last; s++)
      step(d, a + row * K + s * DEPTH, b + column * K + s * DEPTH, K);
    begin += last - first;
    if (first > 0) {
      parts[blockIdx.x * 128 + threadIdx.x] = make_float4(d[0], d[1], d[2], d[3]);
      __syncthreads();
      if (threadIdx.x == 0) release(flags + tile);
      continue;
    }
    int final_cta = (tile * line.steps + line.steps - 1) / line.per_cta;
    int others = final_cta - (int)blockIdx.x;
    if (threadIdx.x == 0)
      while (acquire(flags + tile) != others) __nanosleep(20);
    __syncthreads();
    for (int other = blockIdx.x + 1; other <= final_cta; other++) {
      float4 part = parts[other * 128 + threadIdx.x];
      d[0] += part.x, d[1] += part.y, d[2] += part.z, d[3] += part.w;
    }
    int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    *(float2*)(c + (row + g) * ldc + column + 2 * q) = make_float2(d[0], d[1]);
    *(float2*)(c + (row + g + 8) * ldc + column + 2 * q) = make_float2(d[2], d[3]);
  }
}

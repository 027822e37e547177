// out[M,N] += A[M,K] . B[N,K]^T in f32 from bf16, with K split over the CTAs of a grid: each adds
// its part to out by cp.reduce.async.bulk.tensor, 16 columns at a time through a ring of two staging
// buffers, of which one may still be read while the next one is filled. Whole numbers above a limit
// are counted, and the largest of each column is reduced by cp.reduce.async.bulk. A is read once and
// said to be evicted first; what is read later is prefetched.
#include "device.cuh"

constexpr int M = 64, N = 64, PART = 16;

extern "C" __global__ void __launch_bounds__(128)
    bulk_split_k(const __grid_constant__ CUtensorMap out, const uint32_t* a, const uint32_t* b,
                 int* largest, unsigned long long* above, int limit, int words, int steps) {
  __shared__ __align__(128) float staging[2][M][PART];
  __shared__ __align__(16) int most[N];
  int t = threadIdx.x, g = t % 32 / 4, q = t % 4, row = t / 32 * 16 + g, from = blockIdx.x * steps;
  uint64_t first_out;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 0.5;" : "=l"(first_out));
  if (t == 0) prefetch_map(&out);
  if (t < N) {
    most[t] = INT_MIN;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(b + t * words));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"((size_t)(b + t * words) &
                                                                         ~127ull));
  }
  __syncthreads();
  float d[8][4] = {};
  int end = min(from + steps, words / 8);
  for (int k = from; k < end; k++) {
    uint32_t fragment[4];
    for (int i = 0; i < 4; i++)
      asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;"
                   : "=r"(fragment[i])
                   : "l"(a + (row + i % 2 * 8) * words + 8 * k + q + i / 2 * 4), "l"(first_out));
    for (int j = 0; j < 8; j++) {
      const uint32_t* y = b + (8 * j + g) * words + 8 * k + q;
      multiply_bf16(d[j], fragment, __ldg(y), __ldca(y + 4));
    }
  }
  int count = 0;
  for (int part = 0; part < N / PART; part++) {
    float (*stage)[PART] = staging[part & 1];
    if (part > 1) {
      if (t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      asm volatile("barrier.cta.sync 5, 128;" ::: "memory");
    }
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 4; i++) {
        int column = 8 * j + 2 * q + i % 2;
        float v = d[2 * part + j][i];
        stage[row + i / 2 * 8][column] = v;
        count += v > limit;
        atomicMax(&most[PART * part + column], (int)v);
      }
    fence_async_shared();
    asm volatile("barrier.cta.sync 5, 128;" ::: "memory");
    if (t == 0) {
      asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                   " [%0, {%1, %2}], [%3];" ::"l"(&out),
                   "r"(part * PART), "r"(0), "r"(shared_address(stage))
                   : "memory");
      commit_stores();
    }
  }
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%0], [%1], %2;" ::"l"(
                     largest),
                 "r"(shared_address(most)), "r"(4 * N)
                 : "memory");
    commit_stores();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  count = __reduce_add_sync(0xffffffff, count);
  if (t % 32 == 0)
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(above), "l"((uint64_t)count)
                 : "memory");
}

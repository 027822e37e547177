// out[M,N] = A[M,K] . B[N,K]^T in f32 from bf16: a cluster of four CTAs shares K, each one sums its
// quarter into its own shared memory, and each one then adds a quarter of the rows of all four
// through distributed shared memory. The cooperative groups' cluster does the addresses and waits.
// The least of each column meets in the memory of rank 0 by remote atomics.
#include <cooperative_groups.h>

#include "device.cuh"

namespace cg = cooperative_groups;
constexpr int M = 16, N = 32, PITCH = N + 4;

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128)
    cluster_reduce(const __nv_bfloat16* a, const __nv_bfloat16* b, float* out, int* least, int n,
                   int k) {
  __shared__ __align__(16) float sums[M][PITCH];
  __shared__ int smallest[N];
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), t = threadIdx.x, g = t % 32 / 4, q = t % 4;
  int row0 = blockIdx.y * M, column0 = blockIdx.x / 4 * N + t / 32 * 8;
  float d[4] = {0, 0, 0, 0};
  for (int k0 = rank * 16; k0 < k; k0 += 64) {
    const __nv_bfloat16* x = a + (row0 + g) * k + k0 + 2 * q;
    const __nv_bfloat16* y = b + (column0 + g) * k + k0 + 2 * q;
    uint32_t fragment[4] = {*(const uint32_t*)x, *(const uint32_t*)(x + 8 * k),
                            *(const uint32_t*)(x + 8), *(const uint32_t*)(x + 8 * k + 8)};
    multiply_bf16(d, fragment, *(const uint32_t*)y, *(const uint32_t*)(y + 8));
  }
  for (int i = 0; i < 4; i++) sums[g + i / 2 * 8][t / 32 * 8 + 2 * q + i % 2] = d[i];
  if (t < N) smallest[t] = 0x7fffffff;
  cluster.sync();
  int row = rank * 4 + t / 32, column = t % 32;
  float total = 0;
  for (int other = 0; other < 4; other++)
    total += cluster.map_shared_rank(&sums[0][0], other)[row * PITCH + column];
  out[(row0 + row) * n + blockIdx.x / 4 * N + column] = total;
  atomicMin(cluster.map_shared_rank(smallest, 0) + column, (int)total);
  cluster.sync();
  if (rank == 0 && t < N) atomicMin(least + blockIdx.x / 4 * N + t, smallest[t]);
}

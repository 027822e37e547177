// D[M,N] = 1.5 A[M,K] . B[K,N] - 0.5 C[M,N] with the wmma API: f16 operands, f32 sums; A row-major,
// B column-major in memory; two warps a CTA, each one 16x16 tile; the result passes shared memory.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(64)
    wmma_gemm(const half* a, const half* b, const float* c, float* d, int n, int k) {
  __shared__ float staged[2][16][20];
  int warp = threadIdx.x / 32, row = blockIdx.y * 16, column = (blockIdx.x * 2 + warp) * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;
  wmma::fill_fragment(sum, 0.0f);
  for (int k0 = 0; k0 < k; k0 += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::load_matrix_sync(x, a + row * k + k0, k);
    wmma::load_matrix_sync(y, b + column * k + k0, k);
    wmma::mma_sync(sum, x, y, sum);
  }
  wmma::load_matrix_sync(old, c + row * n + column, n, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] = 1.5f * sum.x[i] - 0.5f * old.x[i];
  wmma::store_matrix_sync(&staged[warp][0][0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x % 32; i < 256; i += 32)
    d[(row + i / 16) * n + column + i % 16] = staged[warp][i / 16][i % 16];
}

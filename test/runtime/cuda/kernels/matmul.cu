// c [m, n] = a [m, k] · b [n, k]ᵀ in bf16, one thread an element at a time: what is tested is the launch.
// A comes through a tensor map, B and C by pointer; CLUSTER is its extent along M, DEPENDENT a kernel that
// waits for the grids before it. Written to PTX by
//   nvcc -ptx -arch=sm_90a [-DCLUSTER=2] [-DDEPENDENT] matmul.cu
// and .version lowered to 8.0, whose instructions it uses, so that ptxas and drivers of CUDA 12 take it.
#include <cstdint>

constexpr int N = 64, K = 64, TILE = 64;

struct alignas(64) TensorMap {
  uint64_t words[16];
};

__device__ float widened(uint16_t bits) { return __uint_as_float(uint32_t(bits) << 16); }

__device__ uint16_t rounded(float value) {
  const uint32_t bits = __float_as_uint(value);
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

#ifdef CLUSTER
#define CLUSTERED __cluster_dims__(CLUSTER, 1, 1)
#else
#define CLUSTERED
#endif

extern "C" __global__ void CLUSTERED __launch_bounds__(128)
    matmul(const __grid_constant__ TensorMap a, const uint16_t* b, uint16_t* c) {
  extern __shared__ __align__(128) uint8_t shared[];
  const uint16_t* tile = reinterpret_cast<const uint16_t*>(shared);
  constexpr int tile_bytes = TILE * K * 2;
  const uint32_t start = uint32_t(__cvta_generic_to_shared(shared));
  const uint32_t barrier = start + tile_bytes;
  const int rows = blockIdx.x * TILE, columns = blockIdx.y * TILE;

  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
#ifdef DEPENDENT
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(tile_bytes));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(start),
        "l"(&a), "r"(0), "r"(rows), "r"(barrier)
        : "memory");
  }
  asm volatile(
      "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n}" ::"r"(barrier)
      : "memory");

  for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
    const int m = i / TILE, n = columns + i % TILE;
    float sum = 0;
    for (int k = 0; k < K; ++k)
      sum += widened(tile[m * K + k]) * widened(b[n * K + k]);
    c[(rows + m) * N + n] = rounded(sum);
  }
#ifdef DEPENDENT
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

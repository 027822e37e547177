// C = A . B[g]^T for groups g of rows of A, bf16 to f32; first[g] is where a group starts. The host
// gives one tensor map of all of A; for each group the kernel makes its own from it, in shared memory
// first, with another address and height, so that rows behind the group are read as zero. 64x32 a
// group; two CTAs take the groups by turns and keep one map each in global memory.
#include "warpgroup.cuh"

constexpr int TILE_M = 64, N = 32, DEPTH = 64, GROUPS = 4;
constexpr int BYTES_A = TILE_M * DEPTH * 2, BYTES_B = N * DEPTH * 2;

DEVICE void replace(uint32_t map, const void* address, int rows) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map),
               "l"(address)
               : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(map),
               "r"(rows)
               : "memory");
}

DEVICE void publish(void* to, uint32_t map) {
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
               "[%0], [%1], 128;" ::"l"(to),
               "r"(map)
               : "memory");
}

DEVICE void acquire(const void* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

DEVICE void multiply_64x32x16(float (&d)[16], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, adds, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b), "r"(adds));
}

DEVICE void make_map(CUtensorMap* shared, void* global, const CUtensorMap& whole, const void* address,
                     int rows) {
  if (threadIdx.x < 32) ((uint32_t*)shared)[threadIdx.x] = ((const uint32_t*)&whole)[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0) replace(shared_address(shared), address, rows);
  __syncwarp();
  publish(global, shared_address(shared));
  acquire(global);
}

extern "C" __global__ void __launch_bounds__(128)
    grouped_maps(const __grid_constant__ CUtensorMap whole, const __grid_constant__ CUtensorMap b,
                 const __nv_bfloat16* a, CUtensorMap* maps, const int* first, float* c, int k) {
  __shared__ __align__(1024) char tile_a[BYTES_A], tile_b[BYTES_B];
  __shared__ __align__(128) CUtensorMap mine;
  __shared__ uint64_t landed;
  uint32_t barrier = shared_address(&landed), x = shared_address(tile_a), y = shared_address(tile_b);
  CUtensorMap* map = maps + blockIdx.x;
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();
  int parity = 0;
  for (int group = blockIdx.x; group < GROUPS; group += gridDim.x) {
    int row0 = first[group], rows = first[group + 1] - row0;
    if (threadIdx.x < 32) make_map(&mine, map, whole, a + row0 * k, rows);
    float d[16];
    for (int k0 = 0; k0 < k; k0 += DEPTH, parity ^= 1) {
      if (threadIdx.x == 0) {
        expect(barrier, BYTES_A + BYTES_B);
        load_tile(x, map, k0, 0, barrier);
        load_tile(y, &b, k0, group * N, barrier);
      }
      wait(barrier, parity);
      pin(d);
      fence_registers();
#pragma unroll
      for (int i = 0; i < DEPTH / 16; i++)
        multiply_64x32x16(d, swizzled_rows(x) + 2 * i, swizzled_rows(y) + 2 * i, k0 > 0 || i > 0);
      commit_group();
      wait_group<0>();
      pin(d);
      __syncthreads();
    }
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < 16; i++) {
      int at = row + i / 2 % 2 * 8;
      if (at < rows) c[(row0 + at) * N + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
    }
  }
}

// out[M,N] = A[M,K] . B[N,K]^T in f32 from f16: four CTAs of a cluster share K. They add up what
// they have around a ring: in each of three steps a CTA sends a quarter of its sums to its neighbour
// by st.async, whose bytes complete the barrier there, and adds the quarter that it has got.
// Who has read a buffer counts that in the memory of the one before. Waits by test_wait sleep longer and
// longer.
#include "device.cuh"

constexpr int N = 32, ROWS = 8, QUARTER = ROWS * N;

DEVICE uint32_t at_rank(uint32_t address, int rank) {
  uint32_t remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

DEVICE void sleep_until(uint32_t barrier, int parity) {
  uint32_t done = 0;
  for (int pause = 20; !done; pause = min(2 * pause, 500)) {
    asm volatile(
        "{.reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
        " selp.b32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    if (!done) __nanosleep(pause);
  }
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64)
    neighbours(const __half2* a, const __half2* b, float* out, int pairs) {
  __shared__ __align__(16) float got[2][QUARTER];
  __shared__ __align__(8) uint64_t barriers[2];
  __shared__ uint32_t read;
  uint32_t rank = cluster_rank(), next = rank + 1 & 3, before = rank + 3 & 3, t = threadIdx.x;
  uint32_t full = shared_address(barriers), counter = shared_address(&read);
  if (t == 0) {
    init_barrier(full, 1), init_barrier(full + 8, 1);
    fence_barrier_init();
    read = 0;
  }
  sync_cluster();
  float sums[4][4];  // of quarter q of the rows: row t / 8, columns 4 * (t % 8) on
  for (int q = 0; q < 4; q++)
    for (int i = 0; i < 4; i++) {
      float sum = 0;
      const __half2* x = a + (blockIdx.y * 32 + q * ROWS + t / 8) * pairs;
      const __half2* y = b + (t % 8 * 4 + i) * pairs;
      for (int k = rank; k < pairs; k += 4) {
        float2 p = __half22float2(__hmul2(x[k], y[k]));
        sum += p.x + p.y;
      }
      sums[q][i] = sum;
    }
  for (int step = 0; step < 3; step++) {
    int buffer = step & 1, sent = rank + 3 - step & 3, gotten = rank + 2 - step & 3;
    if (t == 0) expect(full + 8 * buffer, 4 * QUARTER);
    if (step == 2)  // the neighbour's buffer 0 is used again
      for (uint32_t seen = 0; seen < 64;)
        asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(counter)
                     : "memory");
    uint32_t to = at_rank(shared_address(got[buffer] + 4 * t), next);
    float4 v;
    for (int q = 0; q < 4; q++)
      if (q == sent) v = make_float4(sums[q][0], sums[q][1], sums[q][2], sums[q][3]);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
        ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(at_rank(full + 8 * buffer, next))
        : "memory");
    sleep_until(full + 8 * buffer, step / 2);
    for (int q = 0; q < 4; q++)
      if (q == gotten)
        for (int i = 0; i < 4; i++) sums[q][i] += got[buffer][4 * t + i];
    if (step == 0)
      asm volatile("red.release.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(
                       at_rank(counter, before))
                 : "memory");
  }
  for (int q = 0; q < 4; q++)
    if (q == rank)
      for (int i = 0; i < 4; i++)
        out[(blockIdx.y * 32 + q * ROWS + t / 8) * N + t % 8 * 4 + i] = sums[q][i];
  sync_cluster();
}

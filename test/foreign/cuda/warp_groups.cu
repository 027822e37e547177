// Rows of X[R,C] (f32) belong to groups by key[R]; a warp takes 32 rows, a lane a row. Per row: the
// column of its greatest value; per group within the warp, through match, redux, vote and shuffle:
// how many rows it has, the bits of the keys' payload or-ed, the greatest payload, and its sum.
#include <stdint.h>

struct Row {
  int argmax, members;
  unsigned bits;
  int greatest;
  float sum, scan;
};

__device__ __forceinline__ float group_sum(unsigned peers, float value) {
  float sum = 0;
  for (unsigned left = __activemask(); left; left &= left - 1) {
    int source = __ffs(left) - 1;
    float other = __shfl_sync(__activemask(), value, source);
    if (peers >> source & 1) sum += other;
  }
  return sum;
}

__device__ __forceinline__ float running_sum(unsigned lanes, float value) {
  int lane = threadIdx.x % 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    float below = __shfl_up_sync(lanes, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

extern "C" __global__ void warp_groups(const float* x, const int* keys, const int* payload,
                                            Row* rows, unsigned* votes, int count, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lanes = __ballot_sync(0xffffffff, row < count);
  if (row >= count) return;
  int best = 0;
  for (int i = 1; i < columns; i++)
    if (x[row * columns + i] > x[row * columns + best]) best = i;
  unsigned peers = __match_any_sync(lanes, keys[row]);
  Row mine;
  mine.argmax = best;
  mine.members = __popc(peers);
  mine.bits = __reduce_or_sync(peers, (unsigned)payload[row]);
  mine.greatest = __reduce_max_sync(peers, payload[row]);
  mine.sum = group_sum(peers, x[row * columns]);
  mine.scan = running_sum(lanes, x[row * columns + 1]);
  rows[row] = mine;
  int same;
  unsigned all = __match_all_sync(lanes, keys[row] >> 8, &same);
  int any = __any_sync(lanes, payload[row] < 0), every = __all_sync(lanes, payload[row] < 100);
  unsigned mask = __reduce_xor_sync(lanes, __brev(keys[row]));
  if (threadIdx.x % 32 == 0) {
    votes[row / 32 * 4] = all * same;
    votes[row / 32 * 4 + 1] = any | every << 1;
    votes[row / 32 * 4 + 2] = mask;
    votes[row / 32 * 4 + 3] = __byte_perm(mask, lanes, 0x3715);
  }
}

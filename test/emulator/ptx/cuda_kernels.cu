// Kernels whose PTX is kept beside this file:
//   nvcc -ptx -O3 -arch=sm_90a cuda_kernels.cu -o cuda_kernels_o3.ptx
//   nvcc -ptx -Xcicc -O0 -arch=sm_90a cuda_kernels.cu -o cuda_kernels_o0.ptx
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__constant__ float weights[8] = {0.5f, -1.25f, 2.0f, 0.125f, 3.0f, -0.75f, 1.5f, 0.0625f};
__device__ unsigned long long total;

extern "C" __global__ void saxpy(int n, float a, const float *__restrict__ x, float *y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
}

extern "C" __global__ void transpose(const float *in, float *out, int rows, int cols) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += blockDim.y)
    if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += blockDim.y)
    if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void block_sum(const float *in, float *out, int n) {
  extern __shared__ float partial[];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[blockIdx.x * n + i];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) all += partial[w];
    out[blockIdx.x] = all;
  }
}

extern "C" __global__ void matmul(const __nv_bfloat16 *a, const __nv_bfloat16 *b,
                                  __nv_bfloat16 *c, int m, int n, int k) {
  __shared__ __nv_bfloat16 as[16][16], bs[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float acc = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k
        ? a[row * k + k0 + threadIdx.x] : __float2bfloat16(0.f);
    bs[threadIdx.y][threadIdx.x] = k0 + threadIdx.y < k && col < n
        ? b[(k0 + threadIdx.y) * n + col] : __float2bfloat16(0.f);
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      acc += __bfloat162float(as[threadIdx.y][i]) * __bfloat162float(bs[i][threadIdx.x]);
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = __float2bfloat16(acc);
}

extern "C" __global__ void softmax(const __half *in, __half *out, int n) {
  float peak = -INFINITY, sum = 0;
  const __half *row = in + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += 32) peak = fmaxf(peak, __half2float(row[i]));
  for (int d = 16; d; d /= 2) peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, d));
  for (int i = threadIdx.x; i < n; i += 32) sum += expf(__half2float(row[i]) - peak);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int i = threadIdx.x; i < n; i += 32)
    out[blockIdx.x * n + i] = __float2half(expf(__half2float(row[i]) - peak) / sum);
}

struct Job {
  int kind;
  double scale;
  short offsets[6];
};

__noinline__ __device__ double apply(Job job, double x, int lane) {
  switch (job.kind + lane % 7) {
    case 0: return x * job.scale;
    case 1: return x / job.scale;
    case 2: return x + job.offsets[lane % 6];
    case 3: return sqrt(fabs(x));
    case 4: return fma(x, job.scale, job.scale);
    case 5: return floor(x);
    case 6: return x - job.scale;
    case 7: return -x;
    default: return (double)(float)x;
  }
}

extern "C" __global__ void dispatch(const double *in, double *out, Job job) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = apply(job, in[i], threadIdx.x);
}

extern "C" __global__ void histogram(const unsigned char *data, int n, unsigned *bins) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void permute(const int *keys, int64_t *out, int64_t divisor) {
  int stack[16];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < 16; ++j) stack[j] = keys[i] * (j + 1);
  for (int j = 0; j < 16; ++j) {
    int k = (keys[i] + j) & 15, swap = stack[j];
    stack[j] = stack[k];
    stack[k] = swap;
  }
  int64_t result = 0;
  for (int j = 0; j < 16; ++j) result = result * 31 + stack[j];
  out[i] = result / divisor + result % divisor + __popc(keys[i]) + __clz(keys[i]) +
           __mul64hi(result, divisor) + (int64_t)__brev(keys[i]) + __ffs(keys[i]);
}

extern "C" __global__ void filter(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += weights[j] * (i + j < n ? in[i + j] : 0.f);
  if (i < n) out[i] = tanhf(sum) + __sinf(sum) + logf(fabsf(sum) + 1.f) + rsqrtf(sum * sum + 1.f);
}

extern "C" __global__ void locked_append(int *slots, unsigned *lock, int *length) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0u, 1u) == 0u) {
      int at = *(volatile int *)length;
      slots[at] = blockIdx.x * blockDim.x + threadIdx.x;
      *(volatile int *)length = at + 1;
      __threadfence();
      atomicExch(lock, 0u);
      done = true;
    }
  }
  atomicAdd(&total, 1ull);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) exchange(const int *in, int *out) {
  namespace cg = cooperative_groups;
  __shared__ int mine[64];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  int *theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
  out[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
  cluster.sync();
}

// What host programs of the CuTe DSL ask of CUDA, answered without a GPU: libraries and kernels are
// remembered, memory is the host's, and a launch is handed to whoever has set one.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint32_t grid[3], block[3];
  size_t shared_bytes;
  void *stream, *attributes;
  uint32_t attribute_count;
} Config;  // cudaLaunchConfig_t

typedef struct {
  const void *image;
  const char *name;
} Kernel;

typedef int (*Launch)(const Kernel *kernel, const Config *config, void **parameters);

static Launch launch;
static int multiprocessors = 4, major = 10;

void tilewright_begin(Launch run, int sms, int capability) {
  launch = run;
  multiprocessors = sms;
  major = capability;
}

// -- libraries and kernels

int _cudaLibraryLoadData(const void **library, const void *image) { return *library = image, 0; }
int _cuLibraryLoadData(const void **library, const void *image) { return *library = image, 0; }
int _cudaLibraryUnload(void *library) { return 0; }
int _cuLibraryUnload(void *library) { return 0; }

int _cudaLibraryGetKernel(Kernel **kernel, const void *library, const char *name) {
  Kernel *made = malloc(sizeof *made);
  if (!made) return 2;
  made->image = library;
  made->name = strdup(name);
  *kernel = made;
  return 0;
}

int _cuLibraryGetKernel(Kernel **kernel, const void *library, const char *name) {
  return _cudaLibraryGetKernel(kernel, library, name);
}

int _cudaFuncSetAttribute(void *kernel, int attribute, int value) { return 0; }
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) { return 0; }
int _cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) { return *value = 0; }

int cuda_dialect_init_library_once(void **handle, int (*load)(void **), int (*of_device)(void **, int), void *unused) {
  void *library = NULL;
  int status = 0;
  if (*handle) return 0;
  if ((status = load(&library)) || (of_device && (status = of_device(&library, 0)))) return status;
  *handle = library;
  return 0;
}

void cuda_dialect_unload_library_once(void **handle) { *handle = NULL; }

// -- launches

int _cudaLaunchKernelEx(const Config *config, const Kernel *kernel, void **parameters) {
  return launch ? launch(kernel, config, parameters) : 999;
}

int _cudaLaunchKernel(const Kernel *kernel, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy,
                      uint32_t block_z, void **parameters, size_t shared_bytes, void *stream) {
  Config config = {{(uint32_t)grid_xy, grid_xy >> 32, grid_z},
                   {(uint32_t)block_xy, block_xy >> 32, block_z}, shared_bytes, stream, NULL, 0};
  return _cudaLaunchKernelEx(&config, kernel, parameters);
}

int _cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *kernel, int threads, size_t bytes) {
  return *blocks = 1, 0;
}

int _cudaOccupancyMaxActiveClusters(int *clusters, void *kernel, const Config *config) {
  return *clusters = multiprocessors, 0;
}

// -- devices, streams and errors

int _cudaGetDevice(int *device) { return *device = 0; }
int _cuDeviceGet(int *device, int ordinal) { return *device = 0; }
int _cudaSetDevice(int device) { return 0; }
int _cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int _cudaDriverGetVersion(int *version) { return *version = 13000, 0; }
int _cudaDeviceSynchronize(void) { return 0; }
int _cudaStreamSynchronize(void *stream) { return 0; }
int _cudaStreamCreate(void **stream) { return *stream = NULL, 0; }
int _cudaStreamDestroy(void *stream) { return 0; }
int _cudaStreamWaitEvent(void *stream, void *event, unsigned flags) { return 0; }
int _cudaEventCreate(void **event) { return *event = NULL, 0; }
int _cudaEventDestroy(void *event) { return 0; }
int _cudaEventRecord(void *event, void *stream) { return 0; }
int _cudaEventElapsedTime(float *milliseconds, void *from, void *to) { return *milliseconds = 0, 0; }
int _cudaProfilerStart(void) { return 0; }
int _cudaProfilerStop(void) { return 0; }
void cuda_dialect_assert_success(int status) {}  // the launch that failed is told of in the end
int _cudaGetLastError(void) { return 0; }
int _cudaPeekAtLastError(void) { return 0; }
const char *_cudaGetErrorName(int error) { return "cudaErrorLaunchFailure"; }
const char *_cudaGetErrorString(int error) { return "the emulator has stopped the kernel"; }

int _cudaDeviceGetAttribute(int *value, int attribute, int device) {
  enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76, SHARED_BYTES = 232448 };
  *value = attribute == MULTIPROCESSORS ? multiprocessors
           : attribute == MAJOR         ? major
           : attribute == MINOR         ? 0
                                        : SHARED_BYTES;
  return 0;
}

typedef void (*Raise)(const char *kind, const char **parts, int count);

void CuteDSLRT_TVMFFISetRaisedCudaError(Raise raise, int error) {
  const char *parts[] = {"CUDA Error: ", "the emulator has stopped the kernel"};
  if (raise) raise("RuntimeError", parts, 2);
}

void CuteDSLRT_TVMFFISetRaisedCudaLaunchError(Raise raise, int error) {
  CuteDSLRT_TVMFFISetRaisedCudaError(raise, error);
}

// -- memory

int _cudaMalloc(void **pointer, size_t bytes) { return (*pointer = aligned_alloc(256, (bytes + 255) & ~(size_t)255)) ? 0 : 2; }
int _cudaMallocAsync(void **pointer, size_t bytes, void *stream) { return _cudaMalloc(pointer, bytes); }
int _cudaMallocHost(void **pointer, size_t bytes) { return _cudaMalloc(pointer, bytes); }
int _cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) { return _cudaMalloc(pointer, bytes); }
int _cudaFreeHost(void *pointer) { return free(pointer), 0; }
int _cudaFree(void *pointer) { return free(pointer), 0; }
int _cudaFreeAsync(void *pointer, void *stream) { return free(pointer), 0; }
int _cudaMemcpy(void *to, const void *from, size_t bytes, int kind) { return memcpy(to, from, bytes), 0; }
int _cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) { return memcpy(to, from, bytes), 0; }
int _cudaMemset(void *to, int value, size_t bytes) { return memset(to, value, bytes), 0; }
int _cudaMemsetAsync(void *to, int value, size_t bytes, void *stream) { return memset(to, value, bytes), 0; }

// -- tensor maps: the arguments of the call, behind a word that tells them from other bytes

typedef struct {
  char word[4];
  uint8_t type, rank, interleave, swizzle, promotion, fill, element_strides[5];
  uint16_t box[5];
  uint64_t dims[5], strides[4], address;
} Map;

int _cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, uint64_t address,
                            const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                            const uint32_t *element_strides, int interleave, int swizzle,
                            int promotion, int fill) {
  Map made = {"TWM", type, rank, interleave, swizzle, promotion, fill};
  for (uint32_t dim = 0; dim < rank && dim < 5; dim++) {
    made.dims[dim] = dims[dim];
    made.box[dim] = box[dim];
    made.element_strides[dim] = element_strides[dim];
    if (dim) made.strides[dim - 1] = strides[dim - 1];
  }
  made.address = address;
  memset(map, 0, 128);
  memcpy(map, &made, sizeof made);
  return 0;
}

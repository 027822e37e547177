// tcgen05: tensor memory and the matrix instructions of sm_100a, for one CTA or a pair of them.
#pragma once
#include "device.cuh"

// 128-byte swizzle, rows of 128 bytes along K, eight rows 1024 bytes apart.
DEVICE uint64_t swizzled_rows(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

// 32 rows of 16 bytes without swizzle, as scale factors lie.
DEVICE uint64_t plain_rows(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | 8ull << 32 | 1ull << 46;
}

template <int CTAS>
DEVICE void allocate(uint32_t slot, int columns) {
  if constexpr (CTAS == 1)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(slot),
                 "r"(columns)
                 : "memory");
  else
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::"r"(slot),
                 "r"(columns)
                 : "memory");
}

template <int CTAS>
DEVICE void deallocate(uint32_t tensor_memory, int columns) {
  if constexpr (CTAS == 1)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor_memory),
                 "r"(columns));
  else
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tensor_memory),
                 "r"(columns));
}

DEVICE void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEVICE void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

DEVICE void commit_products(uint32_t barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   barrier)
               : "memory");
}

DEVICE void commit_pair(uint32_t barrier, uint16_t ctas) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster"
               ".b64 [%0], %1;" ::"r"(barrier),
               "h"(ctas)
               : "memory");
}

// 32 columns of the warp's 32 lanes.
DEVICE void load_columns(float (&v)[32], uint32_t from) {
  uint32_t r[32];
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31}, [%32];\ntcgen05.wait::ld.sync.aligned;"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]),
        "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]),
        "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
      : "r"(from)
      : "memory");
  for (int i = 0; i < 32; i++) v[i] = __uint_as_float(r[i]);
}

struct Accumulate {  // whether a product is added to what the accumulator holds
  bool yes;
};

DEVICE void multiply_f16(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, Accumulate adds) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
               "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
               "l"(a), "l"(b), "r"(shape), "r"((int)adds.yes)
               : "memory");
}

DEVICE void multiply_f16_pair(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, Accumulate adds) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
               "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
               "l"(a), "l"(b), "r"(shape), "r"((int)adds.yes)
               : "memory");
}

DEVICE void multiply_fp8(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, Accumulate adds) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
               "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
               "l"(a), "l"(b), "r"(shape), "r"((int)adds.yes)
               : "memory");
}

// One scale of a and b for every 32 numbers along K.
DEVICE void multiply_mxfp8(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, uint32_t scales_a,
                           uint32_t scales_b, Accumulate adds) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %6, 0;\n"
               "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 "
               "[%0], %1, %2, %3, [%4], [%5], adds;\n}" ::"r"(d),
               "l"(a), "l"(b), "r"(shape), "r"(scales_a), "r"(scales_b), "r"((int)adds.yes)
               : "memory");
}

// One scale of a and b for every 16 numbers along K.
DEVICE void multiply_nvfp4(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, uint32_t scales_a,
                           uint32_t scales_b, Accumulate adds) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %6, 0;\n"
               "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X "
               "[%0], %1, %2, %3, [%4], [%5], adds;\n}" ::"r"(d),
               "l"(a), "l"(b), "r"(shape), "r"(scales_a), "r"(scales_b), "r"((int)adds.yes)
               : "memory");
}

// 32 rows of 16 bytes of scales, to all four quarters of the lanes, four columns.
DEVICE void copy_scales(uint32_t to, uint64_t from) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
}

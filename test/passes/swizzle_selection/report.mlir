// report=true says how many passes shared memory needs before and after.
// RUN: tilewright opt %s --passes 'swizzle-selection{report=true}' 2>&1 >%t | filecheck %s

// CHECK: remark: swizzle-selection: 128x64 none: bank conflicts 8-way writing a row, 1-way reading a core matrix → 128x64 128B: bank conflicts 1-way writing a row, 1-way reading a core matrix
// CHECK: remark: swizzle-selection: 32x64 none: bank conflicts 4-way writing a row, 1-way reading a core matrix → 32x64 64B: bank conflicts 1-way writing a row, 1-way reading a core matrix
"tile.kernel"() ({
^bb0(%a: memref<256x136xbf16, 1>, %b: memref<256x136xbf16, strided<[1, 256]>, 1>, %c: memref<256x256xbf16, 1>):
  %ma = "tile.tensor_map"(%a) : (memref<256x136xbf16, 1>) -> !tile.map<bf16, [136, 256], [272], [8, 128], "none">
  %mb = "tile.tensor_map"(%b) : (memref<256x136xbf16, strided<[1, 256]>, 1>) -> !tile.map<bf16, [8, 136, 32], [512, 16], [8, 64, 4], "none">
  %ring = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x32xf32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %c3 step %c1 {
    %more = arith.cmpi ne, %k, %c0 : index
    %empty = "pipe.acquire"(%ring) : (!pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>
    %sa = "pipe.tile"(%empty) {index = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %sb = "pipe.tile"(%empty) {index = 1 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !tile.smem<tensor<32x64xbf16>, "mn", "none">
    "tile.tma_load"(%ma, %sa, %i, %k) : (!tile.map<bf16, [136, 256], [272], [8, 128], "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, index, index) -> ()
    "tile.tma_load"(%mb, %sb, %j, %k) : (!tile.map<bf16, [8, 136, 32], [512, 16], [8, 64, 4], "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">, index, index) -> ()
    "pipe.commit"(%ring) : (!pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> ()
    %full = "pipe.wait"(%ring) : (!pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>
    %ta = "pipe.tile"(%full) {index = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %tb = "pipe.tile"(%full) {index = 1 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> !tile.smem<tensor<32x64xbf16>, "mn", "none">
    "tile.mma"(%acc, %ta, %tb, %more) : (!tile.acc<tensor<128x32xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">, i1) -> ()
    "pipe.release"(%ring) : (!pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "mn", "none">]>) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x32xf32>>, memref<256x256xbf16, 1>, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 8, 1], sym_name = "f", threads = 128 : i64} : () -> ()

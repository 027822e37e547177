// Every tile takes the widest swizzle that divides its contiguous extent; boxes and types follow.
// RUN: tilewright opt %s --passes swizzle-selection | filecheck %s

// 64 bf16 along K are 128 bytes; 32 bf16 along N are 64 bytes.
// CHECK-NOT: "none"
// CHECK:     "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [136, 256], [272], [64, 128], "128B">
// CHECK:     "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [32, 136, 8], [512, 64], [32, 64, 1], "64B">
// CHECK:     "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<32x64xbf16>, "mn", "64B">]>
// CHECK:     "tile.mma"(%{{.*}}) : (!tile.acc<tensor<128x32xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<32x64xbf16>, "mn", "64B">, i1)
// CHECK-NOT: "none"
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

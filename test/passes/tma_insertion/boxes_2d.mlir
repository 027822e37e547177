// Loads become TMA copies into a one-slot ring: one 16-byte box a copy, no swizzle.
// RUN: tilewright opt %s --passes tma-insertion | filecheck %s

// CHECK-NOT:   tile.load
// CHECK:         %[[MA:.*]] = "tile.tensor_map"(%[[A:.*]]) : {{.*}} -> !tile.map<bf16, [136, 256], [272], [8, 128], "none">
// CHECK-NEXT:    %[[MB:.*]] = "tile.tensor_map"(%[[B:.*]]) : {{.*}} -> !tile.map<bf16, [256, 136], [512], [8, 64], "none">
// CHECK-NEXT:    %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "mn", "none">]>
// CHECK:         scf.for %[[K:.*]] =
// CHECK:           %[[EMPTY:.*]] = "pipe.acquire"(%[[RING]])
// CHECK-NEXT:      %[[SA:.*]] = "pipe.tile"(%[[EMPTY]]) {index = 0 : i64}
// CHECK-NEXT:      %[[SB:.*]] = "pipe.tile"(%[[EMPTY]]) {index = 1 : i64}
// CHECK-NEXT:      "tile.tma_load"(%[[MA]], %[[SA]], %{{.*}}#0, %[[K]])
// CHECK-NEXT:      "tile.tma_load"(%[[MB]], %[[SB]], %{{.*}}#1, %[[K]])
// CHECK-NEXT:      "pipe.commit"(%[[RING]])
// CHECK-NEXT:      %[[FULL:.*]] = "pipe.wait"(%[[RING]])
// CHECK-NEXT:      %[[TA:.*]] = "pipe.tile"(%[[FULL]]) {index = 0 : i64}
// CHECK-NEXT:      %[[TB:.*]] = "pipe.tile"(%[[FULL]]) {index = 1 : i64}
// CHECK-NEXT:      "tile.mma"(%{{.*}}, %[[TA]], %[[TB]], %{{.*}})
// CHECK-NEXT:      "pipe.release"(%[[RING]])
// CHECK-NOT:   tile.load
"tile.kernel"() ({
^bb0(%a: memref<256x136xbf16, 1>, %b: memref<256x136xbf16, strided<[1, 256]>, 1>, %c: memref<256x256xbf16, 1>):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %c3 step %c1 {
    %ta = "tile.load"(%a, %i, %k) : (memref<256x136xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %tb = "tile.load"(%b, %j, %k) : (memref<256x136xbf16, strided<[1, 256]>, 1>, index, index) -> !tile.smem<tensor<64x64xbf16>, "mn", "none">
    %more = arith.cmpi ne, %k, %c0 : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "mn", "none">, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x64xf32>>, memref<256x256xbf16, 1>, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// Rows of A are 102 bytes, which TMA can't address: threads copy A into the slot, B goes by TMA.
// RUN: tilewright opt %s --passes tma-insertion 2>&1 | filecheck %s

// CHECK:     remark: tma-insertion: a is copied by threads: its row pitch must be a multiple of 16 bytes, got 102
// CHECK-NOT: tile.load
// CHECK:     "tile.tensor_map"(%{{.*}}) : (memref<256x51xbf16, strided<[1, 256]>, 1>) -> !tile.map<bf16, [256, 51], [512], [8, 64], "none">
// CHECK-NOT: tile.tensor_map
// CHECK:     "pipe.acquire"
// CHECK:     %[[SA:.*]] = "pipe.tile"(%{{.*}}) {index = 0 : i64}
// CHECK:     %[[SB:.*]] = "pipe.tile"(%{{.*}}) {index = 1 : i64}
// CHECK:     "tile.copy"(%{{.*}}, %[[SA]],
// CHECK:     "tile.tma_load"(%{{.*}}, %[[SB]],
// CHECK:     "pipe.commit"
// CHECK-NOT: tile.load
"tile.kernel"() ({
^bb0(%a: memref<256x51xbf16, 1>, %b: memref<256x51xbf16, strided<[1, 256]>, 1>, %c: memref<256x256xbf16, 1>):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %c3 step %c1 {
    %ta = "tile.load"(%a, %i, %k) : (memref<256x51xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %tb = "tile.load"(%b, %j, %k) : (memref<256x51xbf16, strided<[1, 256]>, 1>, index, index) -> !tile.smem<tensor<64x64xbf16>, "mn", "none">
    %more = arith.cmpi ne, %k, %c0 : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "mn", "none">, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x64xf32>>, memref<256x256xbf16, 1>, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

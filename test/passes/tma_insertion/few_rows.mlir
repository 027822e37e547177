// A view with fewer rows than a tile is copied in boxes of its own rows, along K as wide as before; B,
// whose rows are K's, and which has enough columns, is not.
// RUN: tilewright opt %s --passes 'tma-insertion{box=3d},swizzle-selection' | filecheck %s

// CHECK:       "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [136, 5], [272], [64, 5], "128B">
// CHECK-NEXT:  "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [64, 136, 4], [512, 128], [64, 64, 1], "128B">
// CHECK:       "tile.tma_load"
// CHECK-NOT:   tile.load
"tile.kernel"() ({
^bb0(%a: memref<5x136xbf16, 1>, %b: memref<256x136xbf16, strided<[1, 256]>, 1>, %c: memref<5x256xbf16, 1>):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %c3 step %c1 {
    %ta = "tile.load"(%a, %i, %k) : (memref<5x136xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %tb = "tile.load"(%b, %j, %k) : (memref<256x136xbf16, strided<[1, 256]>, 1>, index, index) -> !tile.smem<tensor<64x64xbf16>, "mn", "none">
    %true = arith.cmpi ne, %k, %c0 : index
    "tile.mma"(%acc, %ta, %tb, %true) : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "mn", "none">, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x64xf32>>, memref<5x256xbf16, 1>, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

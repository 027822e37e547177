// 32-bit elements are written row by row; the piece and its buffers are as asked for.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=16 buffers=3}' | filecheck %s

// CHECK-NOT: "tile.store"
// CHECK:     "tile.tensor_map"(%{{.*}}) : (memref<256x256xf32, 1>) -> !tile.map<f32, [256, 256], [1024], [16, 128], "64B">
// CHECK:     "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<128x16xf32>, "k", "64B">]>
// CHECK:     "tile.staged_store"
// CHECK:     }) {write = "rows"}
// CHECK-NOT: "tile.store"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xf32, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

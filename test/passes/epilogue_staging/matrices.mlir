// The store goes through a ring of two pieces, one 128-byte span wide, written as 8x8 matrices.
// RUN: tilewright opt %s --passes epilogue-staging | filecheck %s

// CHECK-NOT: "tile.store"
// CHECK:     ^bb0(%{{.*}}: memref<256x256xbf16, 1>, %{{.*}}: memref<256x256xbf16, 1>, %[[C:.*]]: memref<256x256xbf16, 1>):
// CHECK:       %[[MAP:.*]] = "tile.tensor_map"(%[[C]]) : {{.*}} -> !tile.map<bf16, [256, 256], [512], [64, 128], "128B">
// CHECK:       %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">]>
// CHECK:       %[[AT:.*]]:2 = "tile.cta_tile"()
// CHECK:       %[[ACC:.*]] = "tile.accumulator"()
// CHECK:       "tile.mma"(%[[ACC]],
// CHECK:       "tile.staged_store"(%[[ACC]], %[[MAP]], %[[RING]], %[[AT]]#0, %[[AT]]#1) ({
// CHECK-NEXT:  ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:    %[[Y:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:    "tile.yield"(%[[Y]]) : (bf16) -> ()
// CHECK-NEXT:  }) {write = "matrices"}
// CHECK-NOT: "tile.store"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
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
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// Each CTA of a 2x2 cluster loads half of A's rows for its row and half of B's for its column.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x2 pair=false}' | filecheck %s

// CHECK-NOT: "tile.tma_load"
// CHECK:     %[[MA:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [256, 256], [512], [8, 64], "none">
// CHECK:     %[[MB:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [256, 256], [512], [8, 32], "none">
// CHECK:     "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "k", "none">]>
// CHECK:     %[[AT:.*]]:2 = "tile.cta_tile"()
// CHECK:     scf.for %[[K:.*]] =
// CHECK:       %[[TA:.*]] = "pipe.tile"(%{{.*}}) {index = 0 : i64}
// CHECK:       %[[TB:.*]] = "pipe.tile"(%{{.*}}) {index = 1 : i64}
// CHECK-NEXT:  "tile.tma_multicast"(%[[MA]], %[[TA]], %[[AT]]#0, %[[K]]) {axis = "n", parts = 2 : i64}
// CHECK-NEXT:  "tile.tma_multicast"(%[[MB]], %[[TB]], %[[AT]]#1, %[[K]]) {axis = "m", parts = 2 : i64}
// CHECK-NEXT:  "pipe.commit"
// CHECK:       "tile.mma"
// CHECK-NOT: "tile.tma_load"
// CHECK:     cluster = [2, 2, 1], grid = [2, 4, 1]
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

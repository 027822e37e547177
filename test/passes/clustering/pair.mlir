// A pair shares one MMA: each CTA keeps its A and loads its half of B; nothing is multicast.
// RUN: tilewright opt %s --passes tma-insertion,clustering | filecheck %s

// CHECK-NOT: "tile.mma"
// CHECK-NOT: "tile.tma_multicast"
// CHECK:     %[[MA:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [256, 256], [512], [8, 128], "none">
// CHECK:     %[[MB:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [256, 256], [512], [8, 32], "none">
// CHECK:     "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "k", "none">]>
// CHECK:     %[[AT:.*]]:2 = "tile.cta_tile"()
// CHECK-NEXT: %[[RANK:.*]] = "tile.pair_rank"() : () -> index
// CHECK:     scf.for %[[K:.*]] =
// CHECK:       "tile.tma_load"(%[[MA]], %{{.*}}, %[[AT]]#0, %[[K]])
// CHECK:       %[[TWICE:.*]] = arith.muli %[[AT]]#1, %{{.*}} : index
// CHECK-NEXT:  %[[HALF:.*]] = arith.addi %[[TWICE]], %[[RANK]] : index
// CHECK-NEXT:  "tile.tma_load"(%[[MB]], %{{.*}}, %[[HALF]], %[[K]])
// CHECK:       "tile.pair_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<32x64xbf16>, "k", "none">, i1)
// CHECK-NOT: "tile.mma"
// CHECK-NOT: "tile.tma_multicast"
// CHECK:     cluster = [2, 1, 1], grid = [2, 4, 1]
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

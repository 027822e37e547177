// A loop over tiles counts the cluster tiles that fall to this cluster; tile.place says where one is.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,epilogue-staging{buffers=6},pipelining{stages=3},warp-specialization,persistence{ctas=2 order=n},ping-pong,expand-loops' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x1},persistence{ctas=4 group=2},expand-loops' | filecheck %s --check-prefix CLUSTER
// RUN: tilewright opt %s --passes 'tma-insertion,warp-specialization,persistence{scheduler=clc},expand-loops' | filecheck %s --check-prefix CLAIM

// Two agents take turns: of the two CTAs each takes every other tile, of those each agent every other.
// CHECK-NOT: for_each
// CHECK:     %[[FIRST:.*]] = "sm.special_register"() {register = "ctaid.x"} : () -> i32
// CHECK:     scf.for %[[NUMBER:.*]] = %[[FIRST]] to %c8_i32{{.*}} step %c4_i32
// CHECK-NEXT: %[[IJ:.*]]:2 = "tile.place"(%[[NUMBER]]) {group = 8 : i64, order = "n", tiles = [4, 2]}
// CHECK-NEXT: "pipe.acquire"
// CHECK:     "tile.tma_store"(%{{.*}}, %{{.*}}, %[[IJ]]#0, %[[IJ]]#1, %{{.*}})
// CHECK:     %[[OWN:.*]] = "sm.special_register"() {register = "ctaid.x"} : () -> i32
// CHECK-NEXT: %[[LATER:.*]] = arith.constant 2 : i32
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[OWN]], %[[LATER]] : i32
// CHECK:     scf.for %{{.*}} = %[[SECOND]] to %c8_i32{{.*}} step %c4_i32
// CHECK-NEXT: "tile.place"
// CHECK:     "sm.special_register"
// CHECK:     scf.for %{{.*}} to %c8_i32{{.*}} step %c2_i32
// CHECK-NEXT: "tile.place"
// CHECK-NOT: for_each

// Two clusters of two tiles along M: four cluster tiles.
// CLUSTER:   "sm.special_register"() {register = "clusterid.x"} : () -> i32
// CLUSTER:   scf.for %{{.*}} to %c4_i32{{.*}} step %c2_i32
// CLUSTER-NEXT: "tile.place"(%{{.*}}) {group = 2 : i64, order = "grouped", tiles = [4, 2]}

// No number says which cluster is claimed next.
// CLAIM:     "pipe.for_each_claim"
// CLAIM-NOT: "tile.place"
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x128xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()

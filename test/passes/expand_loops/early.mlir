// One lane of the warp that loads asks L2 for the tiles of the first two steps of its first tile. It
// is behind what tells the CTA its place in the cluster, and in front of the meeting.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization,persistence{ctas=2 order=m},expand-loops{early=2}' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization,persistence{ctas=2 order=m},expand-loops{early=2},pipes-to-barriers' | filecheck %s --check-prefix ENDS
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining{stages=2},warp-specialization,expand-loops' | filecheck %s --check-prefix NONE

// CHECK:      %[[A:.*]] = "tile.tensor_map"(%arg0)
// CHECK:      %[[B:.*]] = "tile.tensor_map"(%arg1)
// CHECK:      "sm.early"() ({
// CHECK:        %[[FIRST:.*]] = "sm.special_register"() {register = "clusterid.x"}
// CHECK-NEXT:   %{{.*}} = arith.constant 0 : index
// CHECK-NEXT:   %[[K:.*]] = arith.constant 0 : index
// CHECK-NEXT:   %[[TILE:.*]]:2 = "tile.place"(%[[FIRST]])
// CHECK-NEXT:   "tile.prefetch_boxes"(%[[A]], %[[TILE]]#0, %[[K]]) {axis = "", parts = 1 : i64, tile = !tile.smem<tensor<64x64xbf16>
// CHECK-NEXT:   "tile.prefetch_boxes"(%[[B]], %[[TILE]]#1, %[[K]]) {axis = "m", parts = 2 : i64
// CHECK-NEXT:   %[[NEXT:.*]] = arith.constant 1 : index
// CHECK-NEXT:   "tile.prefetch_boxes"(%[[A]], %[[TILE]]#0, %[[NEXT]])
// CHECK-NEXT:   "tile.prefetch_boxes"(%[[B]], %[[TILE]]#1, %[[NEXT]])
// CHECK-NEXT: }) {warp = 4 : i64}
// CHECK:      agent = "load", barrier = 2 : i64, first = 4 : i64

// ENDS:       "sm.prologue"
// ENDS:       "sm.barrier_init"
// ENDS:       "sm.cta_place"
// ENDS:       "sm.early"
// ENDS:       "sm.cluster_barrier"
// ENDS-NEXT:  "sm.await_grids"

// NONE-NOT:   sm.early
!a = memref<256x256xbf16, 1>
!b = memref<128x256xbf16, 1>
!c = memref<256x128xbf16, 1>
!t = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x64xf32>>
module attributes {tile.target = "sm_90a"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !t
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !t
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !t, !t, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()
}

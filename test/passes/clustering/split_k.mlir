// Where K is split, each part has a cluster that multicasts: B's loads keep the part's steps, and the
// cluster of the kernel is that of all parts.
// RUN: tilewright opt %s --passes 'tma-insertion,split-k{parts=2},clustering{shape=2x1 pair=false}' | filecheck %s

// CHECK-NOT:  cluster = [1, 1, 2]
// CHECK:      "tile.split_rank"
// CHECK:      %[[STEP:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:      "tile.tma_load"(%{{.*}}, %{{.*}}, %[[AT:.*]]#0, %[[STEP]])
// CHECK:      "tile.tma_multicast"(%{{.*}}, %{{.*}}, %[[AT]]#1, %[[STEP]]) {axis = "m", parts = 2 : i64}
// CHECK:      "tile.reduced_store"
// CHECK:      cluster = [2, 1, 2], grid = [2, 4, 2]
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

// Three CTAs along z share a tile without a cluster: sums meet in workspaces, and the store of what
// comes last takes the place of the one that knew only its own.
// RUN: tilewright opt %s --passes 'split-k{parts=3 over=grid}' | filecheck %s

// CHECK-NOT:  "tile.store"
// CHECK:      %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK-NEXT: %[[PARTIALS:.*]] = "tile.workspace"() {start = "any"} : () -> memref<384x64xf32, 1>
// CHECK-NEXT: %[[ARRIVALS:.*]] = "tile.workspace"() {start = "zero"} : () -> memref<1x1xi32, 1>
// CHECK-NEXT: %[[RANK:.*]] = "tile.split_rank"() : () -> index
// CHECK:      %[[ACC:.*]] = "tile.accumulator"()
// CHECK:      %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[RANK]], %[[FOUR]]
// CHECK:      "tile.gathered_store"(%[[ACC]], %[[PARTIALS]], %[[ARRIVALS]], %{{.*}}, %[[IJ]]#0, %[[IJ]]#1)
// CHECK-NOT:  pipe.create
// CHECK:      cluster = [1, 1, 1], grid = [2, 4, 3]
!a = memref<256x704xbf16, 1>
!b = memref<256x704xbf16, 1>
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
  %steps = arith.constant 11 : index
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

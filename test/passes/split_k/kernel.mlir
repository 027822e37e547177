// Three CTAs share a tile: each loads 4 of its 11 K steps, from 4 times its rank on, and a store that
// adds up their accumulators takes the place of the one that knew only its own.
// RUN: tilewright opt %s --passes 'split-k{parts=3}' | filecheck %s

// CHECK-NOT:  "tile.store"
// CHECK:      ^bb0(%[[A:.*]]: memref<256x704xbf16, 1>, %[[B:.*]]: memref<256x704xbf16, 1>, %[[C:.*]]: memref<256x256xbf16, 1>):
// CHECK:      %[[PARTIALS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xf32>, "k", "128B">]>
// CHECK:      %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK-NEXT: %[[RANK:.*]] = "tile.split_rank"() : () -> index
// CHECK:      %[[ACC:.*]] = "tile.accumulator"()
// CHECK:      %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[RANK]], %[[FOUR]]
// CHECK-NEXT: %[[STEPS:.*]] = arith.constant 4 : index
// CHECK-NEXT: scf.for %[[K:.*]] = %{{.*}} to %[[STEPS]] step
// CHECK-NEXT:   %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]]
// CHECK-NEXT:   "tile.load"(%[[A]], %[[IJ]]#0, %[[STEP]])
// CHECK-NEXT:   "tile.load"(%[[B]], %[[IJ]]#1, %[[STEP]])
// CHECK-NEXT:   arith.cmpi ne, %[[K]],
// CHECK:      "tile.reduced_store"(%[[ACC]], %[[PARTIALS]], %[[C]], %[[IJ]]#0, %[[IJ]]#1)
// CHECK:        arith.truncf
// CHECK-NOT:  "tile.store"
// CHECK:      cluster = [1, 1, 3], grid = [2, 4, 3]
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

// A loop over tiles around every role: the grid shrinks, the accumulator ring gets a second slot.
// RUN: tilewright opt %s --passes 'tma-insertion,warp-specialization,persistence{ctas=3 order=grouped group=2}' | filecheck %s

// CHECK-NOT:  "tile.cta_tile"
// CHECK:      %[[ACCS:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.acc<tensor<128x64xf32>>]>
// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "tile.for_each_tile"() ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:     "pipe.wait"(%[[ACCS]])
// CHECK:          "tile.store"(%{{.*}}, %{{.*}}, %[[I]], %[[J]])
// CHECK:          "pipe.release"(%[[ACCS]])
// CHECK-NEXT:   }) {group = 2 : i64, order = "grouped", tiles = [2, 4]}
// CHECK-NEXT: }) {agent = "epilogue"
// CHECK:      "pipe.role"() ({
// CHECK:        "tile.for_each_tile"() ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK:          scf.for
// CHECK:            "tile.tma_load"(%{{.*}}, %{{.*}}, %[[I]],
// CHECK-NEXT:       "tile.tma_load"(%{{.*}}, %{{.*}}, %[[J]],
// CHECK:      }) {agent = "load"
// CHECK:      "pipe.role"() ({
// CHECK:        "tile.for_each_tile"() ({
// CHECK:          "pipe.acquire"(%[[ACCS]])
// CHECK:          scf.for
// CHECK:            "tile.mma"
// CHECK:          "pipe.commit"(%[[ACCS]])
// CHECK:      }) {agent = "mma"
// CHECK-NOT:  "tile.cta_tile"
// CHECK:      grid = [3, 1, 1]
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

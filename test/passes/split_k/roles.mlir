// The parts of a split K go through rings and roles like a whole one: the load role fills slots from
// its part's first step on, in one loop again, and the sums belong to the epilogue.
// RUN: tilewright opt %s --passes 'tma-insertion,split-k{parts=3},pipelining{stages=3},warp-specialization' | filecheck %s

// CHECK-NOT:  "tile.store"
// CHECK:      %[[RANK:.*]] = "tile.split_rank"()
// CHECK:      %[[FIRST:.*]] = arith.muli %[[RANK]],
// CHECK:      "pipe.role"
// CHECK:        "tile.reduced_store"
// CHECK:      }) {agent = "epilogue"
// CHECK:      "pipe.role"
// CHECK:        %[[STEPS:.*]] = arith.constant 4 : index
// CHECK-NEXT:   scf.for %[[K:.*]] = %{{.*}} to %[[STEPS]] step
// CHECK-NEXT:     %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]]
// CHECK:          "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[STEP]])
// CHECK-NEXT:     "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[STEP]])
// CHECK-NOT:    scf.for
// CHECK:      }) {agent = "load"
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

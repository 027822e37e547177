// Three slots: two steps are loaded ahead, the steady loop loads two further, the rest is drained.
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining{stages=3}' | filecheck %s

// CHECK-NOT:  !pipe.ring<1
// CHECK:      %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64,
// CHECK:      %[[END:.*]] = arith.constant 2 : index
// CHECK:      scf.for %[[P:.*]] = %{{.*}} to %[[END]] step
// CHECK-NEXT:   "pipe.acquire"(%[[RING]])
// CHECK-NOT:    "tile.mma"
// CHECK:        "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[P]])
// CHECK-NEXT:   "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[P]])
// CHECK-NEXT:   "pipe.commit"(%[[RING]])
// CHECK-NEXT: }
// CHECK:      %[[LEFT:.*]] = arith.constant 3 : index
// CHECK:      %[[AHEAD:.*]] = arith.constant 2 : index
// CHECK:      scf.for %[[K:.*]] = %{{.*}} to %[[LEFT]] step
// CHECK:        "pipe.wait"(%[[RING]])
// CHECK:        "tile.mma"
// CHECK-NEXT:   "pipe.release"(%[[RING]])
// CHECK:        %[[LATER:.*]] = arith.addi %[[K]], %[[AHEAD]]
// CHECK:        "pipe.acquire"(%[[RING]])
// CHECK:        "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[LATER]])
// CHECK-NEXT:   "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[LATER]])
// CHECK-NEXT:   "pipe.commit"(%[[RING]])
// CHECK:      scf.for
// CHECK-NOT:    "pipe.acquire"
// CHECK:        "pipe.wait"(%[[RING]])
// CHECK:        "tile.mma"
// CHECK-NEXT:   "pipe.release"(%[[RING]])
// CHECK-NEXT: }
// CHECK-NEXT: "tile.store"
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

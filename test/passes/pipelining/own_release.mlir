// Threads that add products wait for each of them: a slot is released in its own step, the first
// one, too, and nothing waits behind the loops.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,pipelining{stages=3}' | filecheck %s

// CHECK:      %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64,
// CHECK:      scf.for
// CHECK:        "pipe.commit"(%[[RING]])
// CHECK-NEXT: }
// CHECK:      "tile.mma"
// CHECK-NEXT: "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT: "pipe.release"(%[[RING]])
// CHECK:      %[[AHEAD:.*]] = arith.constant 2 : index
// CHECK:      scf.for %[[K:.*]] =
// CHECK:        "tile.mma"
// CHECK-NEXT:   "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT:   "pipe.release"(%[[RING]])
// CHECK:        %[[LATER:.*]] = arith.addi %[[K]], %[[AHEAD]]
// CHECK:        "pipe.acquire"(%[[RING]])
// CHECK:      scf.for
// CHECK-NOT:    "pipe.acquire"
// CHECK:        "tile.mma"
// CHECK-NEXT:   "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT:   "pipe.release"(%[[RING]])
// CHECK-NEXT: }
// CHECK-NEXT: "tile.store"
!a = memref<256x640xf8E4M3FN, 1>
!b = memref<256x640xf8E4M3FN, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">
!tb = !tile.smem<tensor<64x128xf8E4M3FN>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
module attributes {tile.mma_unit = "wgmma.mma_async+fma", tile.target = "sm_90a"} {
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
}

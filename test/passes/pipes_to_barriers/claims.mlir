// Claims are a loop: the first CTA of a cluster asks once all have read the last answer, each CTA announces the
// answer's bytes, and who reads one arrives in the first CTA. The loop goes on while a cluster was claimed.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x1 pair=true},warp-specialization,persistence{scheduler=clc},pipes-to-barriers' | filecheck %s

// CHECK-NOT: pipe.claim
// CHECK:     %[[OWN:.*]] = arith.addi
// CHECK-NEXT: scf.while (%[[NUMBER:.*]] = %[[OWN]]) : (i32) -> i128 {
// CHECK-NEXT: "tile.place"(%[[NUMBER]])
// CHECK:     %[[ANSWER:.*]] = llvm.load
// CHECK-NEXT: %[[CLAIMED:.*]] = "sm.query_cancel"(%[[ANSWER]]) {field = "claimed"}
// CHECK-NEXT: "sm.fence"() {kind = "async_shared"}
// CHECK:     "sm.mapa"(%{{.*}}, %c0_i32
// CHECK-NEXT: "sm.arrive"(%{{.*}}) {scope = "cta"}
// CHECK-NEXT: }) {by = "warp"}
// CHECK:     scf.condition(%[[CLAIMED]]) %[[ANSWER]] : i128
// CHECK:     "sm.query_cancel"(%{{.*}}) {field = "x"}
// CHECK:     agent = "epilogue"
// CHECK:     scf.while : () -> () {
// CHECK:     "sm.wait_barrier"
// CHECK-NEXT: }) {by = "first"}
// CHECK-NEXT: "sm.arrive_expect_tx"(%{{.*}}) {bytes = 16 : i64}
// CHECK-NEXT: "sm.run"
// CHECK:     "sm.try_cancel"(%{{.*}}) {multicast = true}
// CHECK-NEXT: }) {by = "first"}
// CHECK:     scf.condition
// CHECK-NOT: pipe.for_each_claim
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

// Where threads copied the operands, all publish them and meet, one lane multiplies and commits, and all wait.
// Sums in no ring are committed and waited for before they are read, and handed back behind, in a loop.
// RUN: tilewright opt %s --passes 'pipes-to-barriers' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,persistence{ctas=2},pipes-to-barriers' | filecheck %s --check-prefix ALONE
// RUN: tilewright opt %s --target sm_90a --passes 'pipes-to-barriers' | filecheck %s --check-prefix HOPPER

// CHECK:     %[[DONE:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "mma.done"
// CHECK-NEXT: %[[PLACE:.*]] = "sm.position"() {label = "mma.done", stages = 1 : i64}
// CHECK:     "sm.fence"() {kind = "async_shared"}
// CHECK-NEXT: "sm.named_barrier"() {id = 0 : i64, threads = 128 : i64}
// CHECK-NEXT: %[[AT:.*]]:2 = "sm.read_position"(%[[PLACE]])
// CHECK-NEXT: "sm.run"
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: "tile.mma"
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[DONE]], %[[AT]]#0)
// CHECK-NEXT: "sm.commit"(%[[BARRIER]])
// CHECK-NEXT: }) {by = "lane"}
// CHECK-NEXT: "sm.converge"
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[DONE]], %[[AT]]#0)
// CHECK-NEXT: "sm.wait_barrier"(%[[BARRIER]], %[[AT]]#1) {scope = "cta"}
// CHECK-NEXT: "sm.advance_position"(%[[PLACE]])
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NOT: "sm.commit"

// ALONE:     %[[DONE:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "mma.done"
// ALONE:     "tile.mma"
// ALONE:     %[[BARRIER:.*]] = "sm.barrier"(%[[DONE]]
// ALONE-NEXT: "sm.commit"(%[[BARRIER]])
// ALONE:     "sm.wait_barrier"
// ALONE:     "sm.fence"() {kind = "tcgen05_after"}
// ALONE:     "sm.fence"() {kind = "tcgen05_before"}
// ALONE-NEXT: "sm.cta_barrier"
// ALONE-NEXT: "sm.fence"() {kind = "tcgen05_after"}

// HOPPER:    "sm.fence"() {kind = "async_shared"}
// HOPPER-NEXT: "sm.named_barrier"
// HOPPER-NEXT: "tile.mma"
// HOPPER-NEXT: "sm.wgmma_wait"() {pending = 0 : i64}
// HOPPER-NEXT: "sm.named_barrier"
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

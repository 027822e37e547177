// In a fallback cluster fewer CTAs read what one loads, so that a slot is empty after fewer arrivals: here after
// that of one pair, instead of two along M and one more along N. Each CTA finds out in which cluster it is.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=4x2 pair=true fallback=2x1},pipelining{stages=2},warp-specialization,pipes-to-barriers' | filecheck %s

// CHECK:     "sm.barriers"() {arrivals = 1 : i64, label = "operands.full"
// CHECK:     "sm.barriers"() {arrivals = 3 : i64, fallback = 1 : i64, label = "operands.empty"
// CHECK:     "sm.barriers"() {arrivals = 1 : i64, label = "accumulator.full"
// CHECK:     "sm.barrier_init"(%{{.*}}) {count = 1 : i64}
// CHECK:     "sm.barrier_init"(%{{.*}}) {count = 3 : i64, fallback = 1 : i64}
// CHECK:     "sm.cta_place"
// CHECK-NEXT: "sm.in_preferred"
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

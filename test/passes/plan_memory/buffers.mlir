// Tiles that threads load get a place each and are copied there; the barrier mma.done tells them that
// the MMAs on them are done, unless all threads issue those and hold the sums.
// RUN: tilewright opt %s --passes 'plan-memory' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'plan-memory' | filecheck %s --check-prefix=REGISTERS

// CHECK:     %[[A:.*]] = "sm.tile_memory"() {offset = 0 : i64}
// CHECK:     %[[B:.*]] = "sm.tile_memory"() {offset = 16384 : i64}
// CHECK:     "sm.columns"
// CHECK:     "sm.barriers"() {arrivals = 1 : i64, label = "mma.done", offset = 24576 : i64, slots = 1 : i64}
// CHECK-NOT: "tile.load"
// CHECK-NOT: "tile.accumulator"
// CHECK:     "tile.copy"(%{{.*}}, %[[A]],
// CHECK:     "tile.copy"(%{{.*}}, %[[B]],
// CHECK:     "tile.mma"(%{{.*}}, %[[A]], %[[B]],

// REGISTERS:     "sm.shared_memory"() {bytes = 24576 : i64}
// REGISTERS-NOT: "sm.columns"
// REGISTERS-NOT: "sm.barriers"
// REGISTERS:     "tile.accumulator"
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

// Rows of a tile that the view does not have are zeroed once, by all threads, in every slot.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,pipelining{stages=3},expand-loops' | filecheck %s

// 128 - 40 rows of 128 bytes are 704 units of 16.
// CHECK:     %[[TEAM:.*]]:3 = "sm.team"() : () -> (i32, i32, i1)
// CHECK:     %[[MEMORY:.*]] = "sm.slot_memory"() {offsets = [0, 49152], slots = 3 : i64}
// CHECK:     "sm.prologue"() ({
// CHECK:     scf.for %[[UNIT:.*]] = %[[TEAM]]#0 to %c704_i32 step %c128_i32
// CHECK:     scf.for %[[SLOT:.*]] = %c0_i32{{.*}} to %c3_i32 step %c1_i32
// CHECK-NEXT: "tile.clear_unit"(%[[MEMORY]], %[[SLOT]], %[[UNIT]]) {row = 40 : i64, tile = 0 : i64}
// CHECK-NOT: tile.clear_unit
// CHECK:     "sm.fence"() {kind = "async_shared"}
// CHECK-NEXT: }) : () -> ()
// CHECK:     "tile.cta_tile"
!a = memref<40x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<40x256xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

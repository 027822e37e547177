// Neighbours in a row: f of four at a time, their largest magnitude in a thread, then over the lanes that share the row.
// RUN: tilewright opt %s --passes 'expand-loops' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'expand-loops' | filecheck %s --check-prefix HOPPER

// One thread has all of a row: no lane is asked.
// CHECK:     %[[VALUES:.*]] = "tile.read_row"
// CHECK:     %[[MADE:.*]] = "tile.apply_to_row"(%[[VALUES]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:     {first = 0 : i64, width = 4 : i64}
// CHECK-COUNT-7: "tile.apply_to_row"(%[[VALUES]]
// CHECK-COUNT-32: math.absf
// CHECK-NOT: sm.shuffle
// CHECK:     scf.if
// CHECK-NEXT: "tile.write_group"({{.*}}) {columns = 96 : i64, group = 32 : i64, reduce = "amax"}
// CHECK-NOT: tile.store_groups

// Four lanes share a row, each with pairs: two exchanges, and the first lane writes.
// HOPPER:     {first = 0 : i64, width = 2 : i64}
// HOPPER:     arith.maximumf
// HOPPER:     "sm.shuffle"({{.*}}) {apart = 1 : i64}
// HOPPER:     "sm.shuffle"({{.*}}) {apart = 2 : i64}
// HOPPER:     arith.remui %{{.*}}, %c4_i32
// HOPPER:     "tile.write_group"
// HOPPER:     "sm.converge"
// HOPPER-NOT: tile.store_groups
!a = memref<300x256xbf16, 1>
!b = memref<96x256xbf16, 1>
!d = memref<300x3xf32, 1>
!c = memref<300x96xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<32x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x32xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c, %d: !d):
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
  "tile.store_groups"(%acc, %d, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {columns = 96 : i64, group = 32 : i64, reduce = "amax"} : (!acc, !d, index, index) -> ()
}) {arg_names = ["a", "b", "c", "c1"], cluster = [1, 1, 1], grid = [3, 3, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// Threads store rows: all of a team read together, and who has a row of c writes.
// RUN: tilewright opt %s --passes 'tma-insertion,expand-loops' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,expand-loops' | filecheck %s --check-prefix HOPPER

// CHECK:     %[[SUMS:.*]] = "tile.await_sums"
// CHECK-NEXT: %[[LANES:.*]] = "tile.thread_lanes"() : () -> i32
// CHECK-NEXT: %[[ROW:.*]] = "tile.thread_row"(%[[SUMS]])
// CHECK:     %[[FIRST:.*]] = arith.muli %{{.*}}, %c128_i32 : i32
// CHECK-NEXT: %[[OWN:.*]] = arith.addi %[[FIRST]], %[[ROW]] : i32
// CHECK:     %[[INSIDE:.*]] = arith.cmpi ult, %[[OWN]], %c300_i32 : i32
// CHECK:     %[[TILE:.*]] = arith.muli %{{.*}}, %c64_i32 : i32
// CHECK:     scf.for %[[START:.*]] = %c0_i32 to %c64_i32{{.*}} step %c32_i32
// CHECK-NEXT: %[[VALUES:.*]] = "tile.read_row"(%[[SUMS]], %[[LANES]], %[[START]]) {row = 0 : i64}
// CHECK-NEXT: %[[COLUMN:.*]] = arith.addi %[[TILE]], %[[START]] : i32
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK-NEXT: "tile.write_row"(%[[VALUES]], %{{.*}}, %[[OWN]], %[[COLUMN]])
// CHECK:     {behind = 0 : i64, first = 0 : i64, whole = "j", width = 16 : i64}

// 32 bytes at a time.
// CHECK:     "tile.write_row"(%[[VALUES]], %{{.*}}, %[[OWN]], %[[COLUMN]])
// CHECK:     {behind = 16 : i64, first = 16 : i64, whole = "j", width = 16 : i64}
// CHECK-NOT: tile.write_row
// CHECK-NOT: tile.store

// Registers: two rows of each MMA, pairs of neighbours in every 8 columns.
// HOPPER:     "tile.await_mma"() {pending = 0 : i64}
// HOPPER:     %[[ROW:.*]] = "tile.thread_row"
// HOPPER:     "tile.thread_column"(%{{.*}}) {neighbours = 2 : i64}
// HOPPER:     %[[HELD:.*]]:2 = "tile.read_rows"(%{{.*}}) {row = 0 : i64} : {{.*}} -> (vector<16xf32>, vector<16xf32>)
// HOPPER:     scf.if
// HOPPER-NEXT: "tile.write_row"(%[[HELD]]#0
// HOPPER:     {behind = 0 : i64, first = 0 : i64, whole = "j", width = 2 : i64}
// HOPPER:     "tile.write_row"(%[[HELD]]#0
// HOPPER:     {behind = 8 : i64, first = 2 : i64, whole = "j", width = 2 : i64}
// HOPPER-COUNT-6: "tile.write_row"(%[[HELD]]#0
// HOPPER:     arith.constant 8 : i32
// HOPPER:     scf.if
// HOPPER-NEXT: "tile.write_row"(%[[HELD]]#1
// HOPPER:     "tile.read_rows"(%{{.*}}) {row = 64 : i64}
// HOPPER-NOT: tile.store
!a = memref<300x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<300x256xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [3, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

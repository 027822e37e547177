// Sums of tensor memory as 8x8 matrices: a thread stores pairs of neighbours in every 8 columns of two rows.
// RUN: tilewright opt %s --passes 'tma-insertion,expand-loops{reads=matrices}' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,expand-loops{reads=matrices}' | filecheck %s --check-prefix ONCE

// CHECK:     %[[TEAM:.*]]:3 = "sm.team"
// CHECK:     %[[SUMS:.*]] = "tile.await_sums"
// CHECK-NEXT: %[[LANES:.*]] = "tile.thread_lanes"() : () -> i32
// CHECK:     %[[WARP:.*]] = arith.divui %[[TEAM]]#0, %c32_i32
// CHECK:     arith.divui %[[TEAM]]#1, %c4_i32
// CHECK:     arith.remui %[[TEAM]]#1, %c4_i32
// CHECK:     arith.muli %[[WARP]], %c16_i32
// CHECK:     scf.for %[[START:.*]] = %c0_i32 to %c64_i32{{.*}} step %c64_i32
// CHECK-NEXT: %[[READ:.*]]:2 = "tile.read_matrices"(%[[SUMS]], %{{.*}}, %[[START]]) {row = 0 : i64} : {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:     scf.if
// CHECK-NEXT: "tile.write_row"(%[[READ]]#0
// CHECK:     {behind = 0 : i64, first = 0 : i64, whole = "j", width = 2 : i64}
// CHECK-COUNT-7: "tile.write_row"(%[[READ]]#0
// CHECK:     arith.constant 8 : i32
// CHECK:     scf.if
// CHECK-NEXT: "tile.write_row"(%[[READ]]#1
// CHECK-NOT: tile.read_row
// CHECK-NOT: tile.store

// 64 rows: each warp has 16 of them, one load.
// ONCE-COUNT-1: tile.read_matrices
// ONCE-NOT:     tile.read_matrices
!a = memref<300x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<300x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !ta
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !ta, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [5, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

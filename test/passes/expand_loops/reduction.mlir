// Two CTAs share a tile: each writes its sums, all meet, and each adds up every other row of both.
// RUN: tilewright opt %s --passes 'tma-insertion,split-k{parts=2},expand-loops' | filecheck %s

// CHECK:     %[[TEAM:.*]]:3 = "sm.team"
// CHECK:     %[[MEMORY:.*]] = "sm.slot_memory"() {offsets = [0], slots = 1 : i64}
// CHECK:     scf.for %[[START:.*]] = %c0_i32 to %c64_i32{{.*}} step %c32_i32
// CHECK-NEXT: %[[VALUES:.*]] = "tile.read_row"
// CHECK:     scf.if
// CHECK-NEXT: "tile.write_partial"(%[[VALUES]], %[[MEMORY]], %{{.*}}, %[[START]]) {behind = 0 : i64, first = 0 : i64, width = 4 : i64}
// CHECK-NEXT: "tile.write_partial"(%[[VALUES]], %[[MEMORY]], %{{.*}}, %[[START]]) {behind = 4 : i64, first = 4 : i64, width = 4 : i64}
// CHECK-COUNT-6: "tile.write_partial"
// CHECK:     "sm.converge"
// CHECK-NEXT: "sm.cluster_barrier"
// CHECK-NEXT: %[[RANK:.*]] = "sm.special_register"() {register = "cluster_ctaid.z"}

// 64 rows of 16 units are 8 for each of 128 threads, all asked for at once.
// CHECK:     scf.for %{{.*}} = %[[TEAM]]#0 to %c1024_i32 step %c1024_i32
// CHECK-COUNT-8: "tile.partial"(%[[MEMORY]],
// CHECK:     %[[FIRST:.*]] = "sm.mapa"
// CHECK:     %[[A:.*]] = llvm.load %[[FIRST]] {alignment = 16 : i64}
// CHECK:     %[[OTHER:.*]] = "sm.mapa"
// CHECK:     %[[B:.*]] = llvm.load %[[OTHER]]
// CHECK:     %{{.*}} = arith.addf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK:     scf.if
// CHECK:     "tile.write_row"(%{{.*}}) ({
// CHECK:     {behind = 0 : i64, first = 0 : i64, whole = "j", width = 4 : i64}
// CHECK:     arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK-NOT: tile.reduced_store
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

// Two warpgroups that hold a tile store their own rows of it, each by itself.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32 by=warpgroup}' | filecheck %s
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32}' | filecheck %s --check-prefix TEAM
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32 by=warpgroup},assign-threads,plan-memory,expand-loops' | filecheck %s --check-prefix LOOPS

// CHECK:       "tile.tensor_map"{{.*}} -> !tile.map<bf16, [256, 256], [512], [32, 64], "64B">
// CHECK:       !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
// CHECK:       "tile.staged_store"

// TEAM:        "tile.tensor_map"{{.*}} -> !tile.map<bf16, [256, 256], [512], [32, 128], "64B">

// LOOPS:       "sm.run"
// LOOPS-NEXT:  "sm.bulk_wait"() {pending = 1 : i64}
// LOOPS-NEXT:  }) {by = "warpgroup"}
// LOOPS:       %[[PART:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
// LOOPS-NEXT:  "sm.part_barrier"(%[[PART]]) {id = 8 : i64, parts = 2 : i64, threads = 128 : i64}
// LOOPS:       "tile.write_matrices"
// LOOPS:       "sm.fence"() {kind = "async_shared"}
// LOOPS:       "sm.part_barrier"
// LOOPS-NEXT:  "sm.run"
// LOOPS-NEXT:  "tile.tma_store"
// LOOPS-NEXT:  "sm.bulk_commit"
// LOOPS-NEXT:  }) {by = "warpgroup"}
// LOOPS-NOT:   "sm.named_barrier"
// LOOPS:       "sm.bulk_wait"() {pending = 0 : i64}
// LOOPS-NEXT:  }) {by = "warpgroup"}
!a = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<256x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x256xf32>>
module attributes {tile.target = "sm_90a"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !a, %c: !a):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!a, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !a, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 1, 1], sym_name = "f", threads = 256 : i64} : () -> ()
}

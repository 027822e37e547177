// Warpgroups that store by themselves meet by themselves, and have late numbers of their own meetings.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=64 by=warpgroup},select-instructions' | filecheck %s

// CHECK:       %[[HOLDS:.*]] = "sm.any_part_barrier"(%true{{[0-9_]*}}, %{{.*}}) {id = 8 : i64, parts = 2 : i64, threads = 128 : i64}
// CHECK:       %[[NUMBER:[0-9a-z_]+]] = arith.constant -1.44269502 : f32
// CHECK-NEXT:  %[[LATE:[0-9a-z_]+]] = arith.select %[[HOLDS]], %[[NUMBER]]
// CHECK:       vector.broadcast %[[LATE]] : f32
// CHECK:       "sm.part_barrier"
// CHECK-COUNT-3: "sm.any_part_barrier"
// CHECK-NOT:   "sm.any_part_barrier"
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
    %unit = arith.constant 1.0 : f32
    %minus = arith.negf %x : f32
    %e = math.exp %minus : f32
    %under = arith.addf %unit, %e : f32
    %h = arith.divf %x, %under : f32
    %y = arith.truncf %h : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !a, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 1, 1], sym_name = "f", threads = 256 : i64} : () -> ()
}

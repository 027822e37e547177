// An order of tiles is the kernel's until its loops are written out: CTAs then count themselves.
// RUN: tilewright opt %s --target sm_80 --passes 'expand-loops' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,clustering{shape=2x1},expand-loops' | filecheck %s --check-prefix CLUSTER

// CHECK-NOT: tile.order
// CHECK-NOT: tile.cta_tile
// CHECK:     %[[X:.*]] = "sm.special_register"() {register = "ctaid.x"}
// CHECK:     %[[Y:.*]] = "sm.special_register"() {register = "ctaid.y"}
// CHECK:     %[[ROWS:.*]] = arith.muli %[[Y]], %c2_i32
// CHECK:     %[[NUMBER:.*]] = arith.addi %[[ROWS]], %[[X]]
// CHECK:     "tile.place"(%[[NUMBER]]) {group = 4 : i64, order = "grouped", tiles = [2, 2]}
// CHECK-NOT: tile.order

// CLUSTER:   arith.divui %{{.*}}, %c2_i32
// CLUSTER:   "tile.place"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x128xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 2, 1], sym_name = "f", tile.order = {group = 4 : i64, order = "grouped"}, threads = 128 : i64} : () -> ()

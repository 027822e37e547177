// Two warpgroups of a consumer take the registers that the load role gives up: 384 threads start
// with 168 each, and 2 * 232 + 40 = 3 * 168.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,warp-specialization' | filecheck %s

// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 232 : i64}
// CHECK:      }) {agent = "consumer", warps = 8 : i64}
// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 40 : i64}
// CHECK:      }) {agent = "load", warps = 4 : i64}
// CHECK:      threads = 384 : i64
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<256x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x256xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 1, 1], sym_name = "f", threads = 256 : i64} : () -> ()

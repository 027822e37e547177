// Warps may hold the last products of a step back until the next; behind the last loop none is left.
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,pipelining{stages=3},expand-loops' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,expand-loops' | filecheck %s --check-prefix OTHER

// CHECK:     "tile.clear_sums"(%[[ACC:[a-z0-9_]+]])
// CHECK:     scf.for
// CHECK:     "tile.mma"(%[[ACC]]
// CHECK:     scf.for
// CHECK:     "tile.mma"(%[[ACC]]
// CHECK:     }
// CHECK-NEXT: "tile.finish_sums"(%[[ACC]])
// CHECK:     "tile.read_rows"
// CHECK-NOT: "tile.finish_sums"

// OTHER-NOT: "tile.finish_sums"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x250xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
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
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

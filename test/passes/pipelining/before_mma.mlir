// Copies of a later step start behind the meeting that hands over this one, before its MMAs.
// RUN: tilewright opt %s --passes 'copy-insertion,pipelining{stages=2}' | filecheck %s

// CHECK:      scf.for
// CHECK:        "pipe.acquire"
// CHECK:        "pipe.commit"
// CHECK:      scf.for
// CHECK:        "pipe.wait"
// CHECK:        "pipe.acquire"
// CHECK:        "pipe.commit"
// CHECK:        "tile.mma"
// CHECK-NEXT:   "pipe.release"
!a = memref<64x96xbf16, 1>
!b = memref<32x96xbf16, 1>
!c = memref<64x32xf32, 1>
!ta = !tile.smem<tensor<64x32xbf16>, "k", "none">
!tb = !tile.smem<tensor<32x32xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x32xf32>>
module attributes {tile.target = "sm_80"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 3 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f", threads = 128 : i64, tile.warp_grid = [2, 2]} : () -> ()
}

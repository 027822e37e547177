// Where a launch prefers one cluster and may fall back on another, loads have the parts of the first, and the
// grid is whole ones.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,clustering{shape=4x2 pair=true fallback=2x1}' | filecheck %s

// CHECK:     "tile.tma_multicast"(%{{.*}}) {axis = "n", parts = 2 : i64}
// CHECK:     "tile.tma_multicast"(%{{.*}}) {axis = "m", parts = 2 : i64}
// CHECK:     cluster = [4, 2, 1], grid = [4, 4, 1], {{.*}}tile.fallback = [2, 1, 1]
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, strided<[1, 256]>, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "mn", "none">
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

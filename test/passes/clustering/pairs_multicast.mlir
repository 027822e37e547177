// Two pairs along M share halves of B, two CTAs along N share A; a half keeps a swizzle that fits.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,clustering{shape=4x2 pair=true}' | filecheck %s

// CHECK-NOT: "tile.tma_load"
// CHECK:     !tile.map<bf16, [256, 256], [512], [64, 64], "128B">
// CHECK:     !tile.map<bf16, [256, 256], [512], [32, 32], "64B">
// CHECK:     "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<32x64xbf16>, "mn", "64B">]>
// CHECK:     "tile.tma_multicast"(%{{.*}}) {axis = "n", parts = 2 : i64}
// CHECK:     "tile.tma_multicast"(%{{.*}}) {axis = "m", parts = 2 : i64}
// CHECK:     "tile.pair_mma"
// CHECK-NOT: "tile.mma"
// CHECK:     cluster = [4, 2, 1], grid = [4, 4, 1]
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

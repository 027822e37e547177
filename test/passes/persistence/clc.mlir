// A fourth role claims clusters; every other role runs its own tile, then those of the claims.
// RUN: tilewright opt %s --passes 'tma-insertion,warp-specialization,persistence{scheduler=clc depth=3 order=n}' | filecheck %s

// CHECK-NOT:  "tile.cta_tile"
// CHECK:      %[[CLAIMS:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!pipe.response]>
// CHECK:      !pipe.ring<2 : i64, [!tile.acc<tensor<128x64xf32>>]>
// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "pipe.for_each_claim"(%[[CLAIMS]]) ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK:          "tile.store"(%{{.*}}, %{{.*}}, %[[I]], %[[J]])
// CHECK:        }) {group = 8 : i64, order = "n", tiles = [2, 4]}
// CHECK:      agent = "epilogue"
// CHECK:        "pipe.for_each_claim"(%[[CLAIMS]]) ({
// CHECK:      agent = "load"
// CHECK:        "pipe.for_each_claim"(%[[CLAIMS]]) ({
// CHECK:      agent = "mma"
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.claim"(%[[CLAIMS]])
// CHECK-NEXT: }) {agent = "scheduler", warps = 1 : i64}
// CHECK-NOT:  "tile.for_each_tile"
// CHECK:      grid = [2, 4, 1], sym_name = "f", threads = 224 : i64
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// Roles of a pair: the rank of a CTA is worked out once, for all of them, and MMAs are the pair's.
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,clustering,warp-specialization' | filecheck %s

// CHECK:      %[[RANK:.*]] = "tile.pair_rank"()
// CHECK:      "pipe.role"() ({
// CHECK:        "tile.staged_store"
// CHECK-NOT:    "tile.pair_mma"
// CHECK:      agent = "epilogue"
// CHECK:      "pipe.role"() ({
// CHECK:        arith.addi %{{.*}}, %[[RANK]]
// CHECK-NOT:    "tile.pair_mma"
// CHECK:      agent = "load"
// CHECK:      "pipe.role"() ({
// CHECK-NOT:    "tile.tma_load"
// CHECK:        "tile.pair_mma"
// CHECK:      agent = "mma"
// CHECK-NOT:  "tile.mma"
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

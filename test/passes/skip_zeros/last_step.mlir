// Of K = 152 the third step has 24 elements, which two MMA instructions of 16 multiply. The first step
// stands in front of the loop, is never the last one, and stays as it is.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,pipelining{stages=2},warp-specialization,skip-zeros' | filecheck %s

// CHECK:      "pipe.role"() ({
// CHECK:        "tile.mma"(%[[ACC:.*]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:        scf.for %[[K:.*]] = %{{.*}} to
// CHECK:          %[[MORE:.*]] = arith.cmpi ne, %[[K]],
// CHECK:          %[[A:.*]] = "pipe.tile"(%{{.*}}) {index = 0 : i64}
// CHECK-NEXT:     %[[B:.*]] = "pipe.tile"(%{{.*}}) {index = 1 : i64}
// CHECK-NEXT:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT:     %[[LAST:.*]] = arith.cmpi eq, %[[K]], %[[TWO]] : index
// CHECK-NEXT:     "tile.short_mma"(%[[ACC]], %[[A]], %[[B]], %[[MORE]], %[[LAST]]) {depth = 32 : i64}
// CHECK-NOT:  "tile.mma"
// CHECK:      agent = "consumer"
!a = memref<256x152xbf16, 1>
!b = memref<256x152xbf16, 1>
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
  %steps = arith.constant 3 : index
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

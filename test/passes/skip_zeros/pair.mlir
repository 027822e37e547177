// A pair of CTAs leaves out what lies behind the end of K, too: of the third step's four MMA instructions
// two. The others stand in a branch, which only the earlier steps take.
// RUN: tilewright opt %s --target sm_100a --passes 'tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},skip-zeros' | filecheck %s
// RUN: tilewright opt %s --target sm_100a --passes 'tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},skip-zeros,assign-threads,plan-memory,expand-loops,pipes-to-barriers,select-instructions' | filecheck %s --check-prefix=SM

// CHECK:      scf.for %[[K:.*]] = %{{.*}} to
// CHECK:        %[[MORE:.*]] = arith.cmpi ne, %[[K]],
// CHECK:        %[[LAST:.*]] = arith.cmpi eq, %[[K]], %{{.*}} : index
// CHECK-NEXT:   "tile.short_pair_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MORE]], %[[LAST]]) {depth = 32 : i64}
// CHECK-NOT:  "tile.pair_mma"

// SM:      %[[LAST:.*]] = arith.cmpi eq, %{{.*}} : index
// SM:      "sm.mma"(
// SM-NEXT: {{.*}}arith.constant true
// SM-NEXT: "sm.mma"(
// SM-NOT:  "sm.mma"(
// SM:      %[[EARLIER:.*]] = arith.xori %[[LAST]],
// SM-NEXT: scf.if %[[EARLIER]] {
// SM:      "sm.mma"(
// SM:      "sm.mma"(
// SM-NOT:  "sm.mma"(
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

// Three parts of a grid that is larger than the GPU: each writes its sums to its rows, one thread counts the CTA, and those of the
// one that came last add up the rows of all parts, part 0 first.
// RUN: tilewright opt %s --passes 'tma-insertion,split-k{parts=3 over=grid},expand-loops' | filecheck %s

// CHECK:     %[[TEAM:.*]]:3 = "sm.team"
// CHECK:     %[[PARTIALS:.*]] = "tile.workspace"() {start = "any"}
// CHECK:     %[[ARRIVALS:.*]] = "tile.workspace"() {start = "zero"}
// CHECK:     %[[PART:.*]] = "sm.special_register"() {register = "ctaid.z"}
// CHECK:     arith.muli %[[PART]], %c128_i32
// CHECK:     "tile.write_partial"(%{{.*}}, %[[PARTIALS]],
// CHECK:     %[[WORD:.*]] = "tile.partial"(%[[ARRIVALS]], %{{.*}}, %{{.*}}) : (memref<1x1xi32, 1>, i32, i32) -> !llvm.ptr<1>
// CHECK-NEXT: "sm.named_barrier"() {id = 0 : i64, threads = 128 : i64}
// CHECK-NEXT: %[[LAST:.*]] = "sm.count_arrival"(%[[WORD]], %[[TEAM]]#2) {parts = 3 : i64}
// CHECK-NEXT: "sm.converge"
// CHECK-NEXT: %[[ALL:.*]] = "sm.any_barrier"(%[[LAST]]) {id = 0 : i64, threads = 128 : i64}
// CHECK-NEXT: scf.if %[[ALL]]
// CHECK:     %[[A:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NEXT: %[[B:.*]] = llvm.load
// CHECK-NEXT: %[[C:.*]] = llvm.load
// CHECK:     %[[AB:.*]] = arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK-NEXT: arith.addf %[[AB]], %[[C]] : vector<4xf32>
// CHECK:     "tile.write_row"
// CHECK-NOT: sm.cluster_barrier
// CHECK-NOT: tile.gathered_store
!a = memref<2560x704xbf16, 1>
!b = memref<256x704xbf16, 1>
!c = memref<2560x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 11 : index
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [20, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// The kernel takes one more input, a row for each CTA, and writes the clock to it: at its start, and
// in each role at its begin, behind the first loads or the first wait for them, around the store and
// at the end, behind what the role waits for there.
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,pipelining{stages=2},warp-specialization,persistence{ctas=2},instrument{unit=nanoseconds}' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,pipelining{stages=2},warp-specialization,persistence{ctas=2},instrument,expand-loops' | filecheck %s --check-prefix LOOPS
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,pipelining{stages=2},warp-specialization,persistence{ctas=2},instrument,select-instructions' | filecheck %s --check-prefix SELECTED

// CHECK:      ^bb0(%{{.*}}, %{{.*}}, %[[MARKS:.*]]: memref<2x9xi32, 1>, %{{.*}}: memref<256x128xbf16, 1>):
// CHECK-NEXT:   "tile.mark"(%[[MARKS]]) {column = 0 : i64, keep = "first", place = "start", unit = "nanoseconds"}
// CHECK:        "pipe.role"() ({
// CHECK-NEXT:     "tile.mark"(%[[MARKS]]) {column = 1 : i64, keep = "first", place = "consumer.begin"
// CHECK:          "pipe.wait"
// CHECK-NEXT:     "tile.mark"(%[[MARKS]]) {column = 2 : i64, keep = "first", place = "consumer.arrived"
// CHECK:          "pipe.release"
// CHECK:          "pipe.release"
// CHECK-NEXT:     "tile.mark"(%[[MARKS]]) {column = 3 : i64, keep = "last", place = "consumer.sums"
// CHECK-NEXT:     "tile.staged_store"
// CHECK:          "tile.mark"(%[[MARKS]]) {column = 4 : i64, keep = "last", place = "consumer.stored"
// CHECK:          "tile.mark"(%[[MARKS]]) {column = 5 : i64, keep = "last", place = "consumer.end"
// CHECK:        "pipe.role"() ({
// CHECK-NEXT:     "tile.mark"(%[[MARKS]]) {column = 6 : i64, keep = "first", place = "load.begin"
// CHECK:          "pipe.commit"
// CHECK-NEXT:     "tile.mark"(%[[MARKS]]) {column = 7 : i64, keep = "first", place = "load.issued"
// CHECK:          "tile.mark"(%[[MARKS]]) {column = 8 : i64, keep = "last", place = "load.end"
// CHECK:      arg_names = ["a", "b", "marks", "c"]

// LOOPS:      "sm.bulk_wait"() {pending = 0 : i64}
// LOOPS-NOT:  sm.bulk_wait
// LOOPS:      "tile.mark"(%{{.*}}) {column = 5 : i64

// What is read before the grids in front have ended is stored behind that.
// SELECTED:     "sm.special_register"() {register = "clock"}
// SELECTED-NOT: llvm.store %{{.*}} !llvm.ptr<1>
// SELECTED:     "sm.await_grids"
// SELECTED:     llvm.store
!a = memref<256x256xbf16, 1>
!b = memref<128x256xbf16, 1>
!c = memref<256x128xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
module attributes {tile.target = "sm_90a"} {
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()
}

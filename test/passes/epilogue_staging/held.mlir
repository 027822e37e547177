// Threads read what they need of a bias, of row scales and of a scalar before the main loop of the
// tile.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32 vectors=registers}' | filecheck %s
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32}' | filecheck %s --check-prefix THREADS
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=32 vectors=registers},assign-threads,plan-memory,expand-loops' | filecheck %s --check-prefix LOOPS

// CHECK:       ^bb0(%{{.*}}, %{{.*}}, %[[BIAS:.*]]: memref<256xbf16, 1>, %[[ROWS:.*]]: memref<256xf32, 1>, %[[ALL:.*]]: memref<f32, 1>,
// CHECK:       "tile.read_ahead"(%[[ALL]], %[[I:.*]], %[[J:.*]]) {axes = ""}
// CHECK-NEXT:  "tile.read_ahead"(%[[ROWS]], %[[I]], %[[J]]) {axes = "m"}
// CHECK-NEXT:  "tile.read_ahead"(%[[BIAS]], %[[I]], %[[J]]) {axes = "n"}
// CHECK:       scf.for
// CHECK:       "tile.staged_store"(%{{.*}}, %{{.*}}, %{{.*}}, %[[I]], %[[J]])
// CHECK:       "tile.element"(%[[BIAS]]) {axes = "n"}

// THREADS-NOT: tile.read_ahead

// LOOPS-COUNT-11: "tile.read_operand"
// LOOPS-NOT:   "tile.read_operand"
// LOOPS:       scf.for
// LOOPS:       "tile.held_element"(%{{.*}}, %{{.*}}) {axes = ""} : (memref<f32, 1>, f32) -> f32
// LOOPS:       "tile.held_element"(%{{.*}}, %{{.*}}) {axes = "m"} : (memref<256xf32, 1>, f32) -> f32
// LOOPS:       "tile.held_element"(%{{.*}}, %{{.*}}) {axes = "n"} : (memref<256xbf16, 1>, vector<2xbf16>) -> bf16
// LOOPS-NOT:   tile.read_ahead
// LOOPS-NOT:   "tile.element"
!a = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x64xf32>>
module attributes {tile.target = "sm_90a"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !a, %bias: memref<256xbf16, 1>, %rows: memref<256xf32, 1>, %all: memref<f32, 1>, %c: !a):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!a, index, index) -> !ta
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !ta, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {axes = "n"} : (memref<256xbf16, 1>) -> bf16
    %f = "tile.element"(%rows) {axes = "m"} : (memref<256xf32, 1>) -> f32
    %g = "tile.element"(%all) {axes = ""} : (memref<f32, 1>) -> f32
    %wide = arith.extf %e : bf16 to f32
    %s = arith.mulf %x, %g : f32
    %t = arith.mulf %s, %f : f32
    %u = arith.addf %t, %wide : f32
    %y = arith.truncf %u : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !a, index, index) -> ()
}) {arg_names = ["a", "b", "bias", "rows", "all", "c"], cluster = [1, 1, 1], grid = [4, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()
}

// A matmul becomes the program of one CTA: a K loop over loads and an MMA, then one store.
// RUN: tilewright opt %s --passes 'tiling{tile=128x64x32}' | filecheck %s

// CHECK-NOT:   func.func
// CHECK-NOT:   tile.matmul
// CHECK:       "tile.kernel"() ({
// CHECK-NEXT:  ^bb0(%[[A:.*]]: memref<300x136xbf16, 1>, %[[B:.*]]: memref<520x136xbf16, strided<[1, 520]>, 1>, %[[E:.*]]: memref<520xf32, 1>, %[[C:.*]]: memref<300x520xf32, 1>):
// CHECK-NEXT:    %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK-NEXT:    %[[ACC:.*]] = "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[STEPS:.*]] = arith.constant 5 : index
// CHECK-NEXT:    scf.for %[[K:.*]] = %[[ZERO]] to %[[STEPS]]
// CHECK-NEXT:      %[[TA:.*]] = "tile.load"(%[[A]], %[[IJ]]#0, %[[K]]) {{.*}} -> !tile.smem<tensor<128x32xbf16>, "k", "none">
// CHECK-NEXT:      %[[TB:.*]] = "tile.load"(%[[B]], %[[IJ]]#1, %[[K]]) {{.*}} -> !tile.smem<tensor<64x32xbf16>, "mn", "none">
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi ne, %[[K]], %[[ZERO]]
// CHECK-NEXT:      "tile.mma"(%[[ACC]], %[[TA]], %[[TB]], %[[MORE]])
// CHECK:         "tile.store"(%[[ACC]], %[[C]], %[[IJ]]#0, %[[IJ]]#1) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:      "tile.element"(%[[E]]) {axes = "n"}
// CHECK:       arg_names = ["a", "b", "e0", "c"], cluster = [1, 1, 1], grid = [3, 9, 1], sym_name = "f", threads = 128
func.func @f(%a: tensor<300x136xbf16>, %b: tensor<136x520xbf16>, %bias: tensor<520xf32>) -> tensor<300x520xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {axes = "n"} : (tensor<520xf32>) -> f32
    %y = arith.addf %x, %e : f32
    "tile.yield"(%y) : (f32) -> ()
  }) {a_major = "k", b_major = "mn"} : (tensor<300x136xbf16>, tensor<136x520xbf16>) -> tensor<300x520xf32>
  return %c : tensor<300x520xf32>
}

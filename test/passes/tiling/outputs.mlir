// Each output of a matmul becomes a store of its own, which computes what its element needs alone.
// RUN: tilewright opt %s --passes 'tiling{tile=128x64x32}' | filecheck %s

// CHECK-NOT:   tile.keep
// CHECK-NOT:   tile.kept
// CHECK:       ^bb0(%[[A:.*]]: memref<300x136xbf16, 1>, %[[B:.*]]: memref<520x136xbf16, 1>, %[[E:.*]]: memref<520xf32, 1>, %[[C:.*]]: memref<300x520xbf16, 1>, %[[D:.*]]: memref<300x520xf32, 1>):
// CHECK:         "tile.store"(%[[ACC:.*]], %[[C]], %[[IJ:.*]]#0, %[[IJ]]#1) ({
// CHECK:           arith.addf
// CHECK-NEXT:      math.absf
// CHECK-NEXT:      %[[T:.*]] = arith.truncf
// CHECK-NEXT:      "tile.yield"(%[[T]]) : (bf16) -> ()
// CHECK:         "tile.store"(%[[ACC]], %[[D]], %[[IJ]]#0, %[[IJ]]#1) ({
// CHECK:           %[[Z:.*]] = arith.addf
// CHECK-NEXT:      "tile.yield"(%[[Z]]) : (f32) -> ()
// CHECK:       arg_names = ["a", "b", "e0", "c", "c1"]
func.func @f(%a: tensor<300x136xbf16>, %b: tensor<520x136xbf16>, %bias: tensor<520xf32>) -> (tensor<300x520xbf16>, tensor<300x520xf32>) {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {axes = "n"} : (tensor<520xf32>) -> f32
    %z = arith.addf %x, %e : f32
    %y = math.absf %z : f32
    %t = arith.truncf %y : f32 to bf16
    "tile.keep"(%z) : (f32) -> ()
    "tile.yield"(%t) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<300x136xbf16>, tensor<520x136xbf16>) -> tensor<300x520xbf16>
  %d = "tile.kept"(%c) {number = 0 : i64} : (tensor<300x520xbf16>) -> tensor<300x520xf32>
  return %c, %d : tensor<300x520xbf16>, tensor<300x520xf32>
}

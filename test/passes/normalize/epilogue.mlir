// A chain of elementwise ops becomes one region; other tensors are read by tile.element.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-LABEL: func.func @bias_relu
// CHECK-SAME:    (%[[A:.*]]: tensor<64x32xbf16>, %[[B:.*]]: tensor<48x32xbf16>, %[[BIAS:.*]]: tensor<48xbf16>)
// CHECK-NOT:   linalg
// CHECK:       "tile.matmul"(%[[A]], %[[B]]) ({
// CHECK-NEXT:  ^bb0(%[[ACC:.*]]: f32):
// CHECK-NEXT:    %[[E:.*]] = "tile.element"(%[[BIAS]]) {axes = "n"} : (tensor<48xbf16>) -> bf16
// CHECK-NEXT:    %[[W:.*]] = arith.extf %[[E]]
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[ACC]], %[[W]]
// CHECK-NEXT:    %[[Z:.*]] = arith.constant 0.0
// CHECK-NEXT:    %[[R:.*]] = arith.maximumf %[[S]], %[[Z]]
// CHECK-NEXT:    %[[T:.*]] = arith.truncf %[[R]]
// CHECK-NEXT:    "tile.yield"(%[[T]])
#mn = affine_map<(i, j) -> (i, j)>
#n = affine_map<(i, j) -> (j)>
func.func @bias_relu(%a: tensor<64x32xbf16>, %b: tensor<48x32xbf16>, %bias: tensor<48xbf16>) -> tensor<64x48xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<64x32xbf16>, tensor<48x32xbf16>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  %biased = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%sum, %bias : tensor<64x48xf32>, tensor<48xbf16>) outs(%empty : tensor<64x48xf32>) {
  ^bb0(%x: f32, %e: bf16, %unused: f32):
    %wide = arith.extf %e : bf16 to f32
    %s = arith.addf %x, %wide : f32
    linalg.yield %s : f32
  } -> tensor<64x48xf32>
  %relu = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%biased : tensor<64x48xf32>) outs(%empty : tensor<64x48xf32>) {
  ^bb0(%x: f32, %unused: f32):
    %r = arith.maximumf %x, %zero : f32
    linalg.yield %r : f32
  } -> tensor<64x48xf32>
  %c = arith.truncf %relu : tensor<64x48xf32> to tensor<64x48xbf16>
  return %c : tensor<64x48xbf16>
}

// The form that a spec builds: the result is one tile.matmul, and no linalg is left.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-LABEL: func.func @matmul
// CHECK-SAME:    (%[[A:.*]]: tensor<64x32xbf16>, %[[B:.*]]: tensor<48x32xbf16>)
// CHECK-NOT:   linalg
// CHECK:       %[[C:.*]] = "tile.matmul"(%[[A]], %[[B]]) ({
// CHECK-NEXT:  ^bb0(%[[ACC:.*]]: f32):
// CHECK-NEXT:    %[[T:.*]] = arith.truncf %[[ACC]] : f32 to bf16
// CHECK-NEXT:    "tile.yield"(%[[T]])
// CHECK-NEXT:  }) {a_major = "k", b_major = "k"}
// CHECK-NEXT:  return %[[C]] : tensor<64x48xbf16>
func.func @matmul(%a: tensor<64x32xbf16>, %b: tensor<48x32xbf16>) -> tensor<64x48xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<64x32xbf16>, tensor<48x32xbf16>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  %c = arith.truncf %sum : tensor<64x48xf32> to tensor<64x48xbf16>
  return %c : tensor<64x48xbf16>
}

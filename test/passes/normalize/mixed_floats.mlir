// Two floats of 8 bits may be multiplied with each other.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-NOT: linalg
// CHECK:     "tile.matmul"(%arg0, %arg1) ({
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):

func.func @f(%a: tensor<64x32xf8E4M3FN>, %b: tensor<48x32xf8E5M2>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<64x32xf8E4M3FN>, tensor<48x32xf8E5M2>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %sum : tensor<64x48xf32>
}

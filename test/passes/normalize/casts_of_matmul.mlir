// linalg.matmul extends bytes by itself: with their sign, unless it says cast_unsigned.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK:       func.func @f(%[[A:.*]]: tensor<64x32xui8>, %[[B:.*]]: tensor<48x32xui8>)
// CHECK-NOT:   linalg
// CHECK:       "tile.matmul"(%[[A]], %[[B]]) ({
// CHECK-NEXT:  ^bb0(%[[ACC:.*]]: i32):

func.func @f(%a: tensor<64x32xi8>, %b: tensor<48x32xi8>) -> tensor<64x48xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x48xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x48xi32>) -> tensor<64x48xi32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    {cast = #linalg.type_fn<cast_unsigned>}
    ins(%a, %b : tensor<64x32xi8>, tensor<48x32xi8>) outs(%init : tensor<64x48xi32>) -> tensor<64x48xi32>
  return %sum : tensor<64x48xi32>
}

// Integers have no sign in MLIR: what extends them says it, and an argument becomes ui8.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-LABEL: func.func @matmul
// CHECK-SAME:    (%[[A:.*]]: tensor<32x64xi8>, %[[B:.*]]: tensor<48x32xui8>)
// CHECK-NOT:   linalg
// CHECK-NOT:   arith.ext
// CHECK:       %[[C:.*]] = "tile.matmul"(%[[A]], %[[B]]) ({
// CHECK-NEXT:  ^bb0(%[[ACC:.*]]: i32):
// CHECK-NEXT:    %[[F:.*]] = arith.sitofp %[[ACC]] : i32 to f32
// CHECK-NEXT:    "tile.yield"(%[[F]])
// CHECK-NEXT:  }) {a_major = "mn", b_major = "k"}
// CHECK-NEXT:  return %[[C]] : tensor<64x48xf32>
func.func @matmul(%a: tensor<32x64xi8>, %b: tensor<48x32xi8>) -> tensor<64x48xf32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x48xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x48xi32>) -> tensor<64x48xi32>
  %turned = tensor.empty() : tensor<64x32xi32>
  %x = linalg.generic {
    indexing_maps = [affine_map<(m, k) -> (k, m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]
  } ins(%a : tensor<32x64xi8>) outs(%turned : tensor<64x32xi32>) {
  ^bb0(%u: i8, %v: i32):
    %wide = arith.extsi %u : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<64x32xi32>
  %y = arith.extui %b : tensor<48x32xi8> to tensor<48x32xi32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %y : tensor<64x32xi32>, tensor<48x32xi32>) outs(%init : tensor<64x48xi32>) -> tensor<64x48xi32>
  %c = arith.sitofp %sum : tensor<64x48xi32> to tensor<64x48xf32>
  return %c : tensor<64x48xf32>
}

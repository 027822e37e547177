// f32 operands are what tf32 is read from, and whoever wrote the file is told.
// RUN: tilewright opt %s --passes normalize,tiling 2>&1 | filecheck %s

// CHECK: :11:10: remark: f32 operands are multiplied as tf32, which has 10 fraction bits
// CHECK: ^bb0(%[[A:.*]]: memref<64x32xf32, 1>, %[[B:.*]]: memref<48x32xf32, 1>

func.func @f(%a: tensor<64x32xf32>, %b: tensor<48x32xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<64x32xf32>, tensor<48x32xf32>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %sum : tensor<64x48xf32>
}

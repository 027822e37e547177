// Bytes with a scale for every column: c = relu(sum + bias[n]) * scale[n] in f16, bias as integers.
func.func @dequantised(%a: tensor<150x112xi8>, %b: tensor<136x112xi8>, %bias: tensor<136xi32>, %scale: tensor<136xf32>) -> tensor<150x136xf16> {
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<150x136xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<150x136xi32>) -> tensor<150x136xi32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<150x112xi8>, tensor<136x112xi8>) outs(%init : tensor<150x136xi32>) -> tensor<150x136xi32>
  %out = tensor.empty() : tensor<150x136xf16>
  %c = linalg.generic {
    indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%sum, %bias, %scale : tensor<150x136xi32>, tensor<136xi32>, tensor<136xf32>) outs(%out : tensor<150x136xf16>) {
  ^bb0(%x: i32, %p: i32, %s: f32, %o: f16):
    %moved = arith.addi %x, %p : i32
    %float = arith.sitofp %moved : i32 to f32
    %positive = arith.maximumf %float, %none : f32
    %scaled = arith.mulf %positive, %s : f32
    %y = arith.truncf %scaled : f32 to f16
    linalg.yield %y : f16
  } -> tensor<150x136xf16>
  return %c : tensor<150x136xf16>
}

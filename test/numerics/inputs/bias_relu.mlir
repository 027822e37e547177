#mn = affine_map<(i, j) -> (i, j)>
#n = affine_map<(i, j) -> (j)>
func.func @bias_relu(%a: tensor<100x72xbf16>, %b: tensor<44x72xbf16>, %bias: tensor<44xbf16>) -> tensor<100x44xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100x44xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100x44xf32>) -> tensor<100x44xf32>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<100x72xbf16>, tensor<44x72xbf16>) outs(%init : tensor<100x44xf32>) -> tensor<100x44xf32>
  %biased = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%sum, %bias : tensor<100x44xf32>, tensor<44xbf16>) outs(%empty : tensor<100x44xf32>) {
  ^bb0(%x: f32, %e: bf16, %unused: f32):
    %wide = arith.extf %e : bf16 to f32
    %s = arith.addf %x, %wide : f32
    linalg.yield %s : f32
  } -> tensor<100x44xf32>
  %relu = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%biased : tensor<100x44xf32>) outs(%empty : tensor<100x44xf32>) {
  ^bb0(%x: f32, %unused: f32):
    %r = arith.maximumf %x, %zero : f32
    linalg.yield %r : f32
  } -> tensor<100x44xf32>
  %c = arith.truncf %relu : tensor<100x44xf32> to tensor<100x44xbf16>
  return %c : tensor<100x44xbf16>
}

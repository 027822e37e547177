func.func @matmul(%a: tensor<512x256xbf16>, %b: tensor<512x256xbf16>, %bias: tensor<512xf32>) -> tensor<512x512xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>) -> tensor<512x512xf32>
  %sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %b : tensor<512x256xbf16>, tensor<512x256xbf16>) outs(%init : tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = tensor.empty() : tensor<512x512xbf16>
  %out = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%sum, %bias : tensor<512x512xf32>, tensor<512xf32>) outs(%c : tensor<512x512xbf16>) {
  ^bb0(%s: f32, %d: f32, %o: bf16):
    %added = arith.addf %s, %d : f32
    %rounded = arith.truncf %added : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<512x512xbf16>
  return %out : tensor<512x512xbf16>
}

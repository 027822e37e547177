func.func @f(%a: tensor<2048x512xbf16>, %b: tensor<2048x512xbf16>, %e: tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048x2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %sum = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : tensor<2048x512xbf16>, tensor<2048x512xbf16>)
    outs(%init : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %into = tensor.empty() : tensor<2048x2048xbf16>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%sum, %e : tensor<2048x2048xf32>, tensor<2048x2048xbf16>)
    outs(%into : tensor<2048x2048xbf16>) {
  ^bb0(%x: f32, %y: bf16, %out: bf16):
    %wide = arith.extf %y : bf16 to f32
    %all = arith.addf %x, %wide : f32
    %last = arith.truncf %all : f32 to bf16
    linalg.yield %last : bf16
  } -> tensor<2048x2048xbf16>
  return %c : tensor<2048x2048xbf16>
}

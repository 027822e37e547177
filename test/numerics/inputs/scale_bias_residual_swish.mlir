func.func @linear(%x: tensor<136x72xbf16>, %w: tensor<72x104xbf16>, %bias: tensor<104xf32>, %res: tensor<136x104xbf16>, %s: tensor<136xbf16>) -> tensor<136x104xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<136x104xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<136x104xf32>) -> tensor<136x104xf32>
  %c = linalg.matmul ins(%x, %w : tensor<136x72xbf16>, tensor<72x104xbf16>) outs(%i : tensor<136x104xf32>) -> tensor<136x104xf32>
  %o = tensor.empty() : tensor<136x104xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%c, %bias, %res, %s : tensor<136x104xf32>, tensor<104xf32>, tensor<136x104xbf16>, tensor<136xbf16>) outs(%o : tensor<136x104xbf16>) {
  ^bb0(%in: f32, %b: f32, %rs: bf16, %sc: bf16, %out: bf16):
    %scf = arith.extf %sc : bf16 to f32
    %0 = arith.mulf %in, %scf : f32
    %1 = arith.addf %0, %b : f32
    %2 = arith.extf %rs : bf16 to f32
    %3 = arith.addf %1, %2 : f32
    %n = arith.negf %3 : f32
    %x2 = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %x2, %one : f32
    %sig = arith.divf %3, %d : f32
    %p = arith.cmpf ugt, %sig, %zero : f32
    %rl = arith.select %p, %sig, %zero : f32
    %t = arith.truncf %rl : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<136x104xbf16>
  return %r : tensor<136x104xbf16>
}

// LLVM's InstCombine multiplied bf16 in f16, where 10^6 is infinite, because bf16 has fewer digits.
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<8x16xbf16>, %y: tensor<16x8xbf16>) -> tensor<8x8xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul ins(%x, %y : tensor<8x16xbf16>, tensor<16x8xbf16>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = tensor.empty() : tensor<8x8xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%s : tensor<8x8xf32>) outs(%o : tensor<8x8xf16>) {
  ^bb0(%u: f32, %v: f16):
    %large = arith.constant 1.0e6 : f32
    %small = arith.constant 0.0009765625 : f32
    %0 = arith.mulf %u, %large : f32
    %1 = arith.truncf %0 : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.mulf %2, %small : f32
    %4 = arith.truncf %3 : f32 to f16
    linalg.yield %4 : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

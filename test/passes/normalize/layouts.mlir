// Transposes and extensions on the way to the matmul become operand layouts.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// A is stored [K,M] and transposed (mn-major); B is stored [K,N], the plain matmul's form.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT:   linalg
// CHECK:       "tile.matmul"(%{{.*}}, %{{.*}}) ({
// CHECK:       }) {a_major = "mn", b_major = "mn"} : (tensor<32x64xf16>, tensor<32x48xf16>) -> tensor<64x48xf32>
func.func @transposed(%a: tensor<32x64xf16>, %b: tensor<32x48xf16>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %at = tensor.empty() : tensor<64x32xf16>
  %a2 = linalg.transpose ins(%a : tensor<32x64xf16>) outs(%at : tensor<64x32xf16>) permutation = [1, 0]
  %aw = tensor.empty() : tensor<64x32xf32>
  %a3 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%a2 : tensor<64x32xf16>) outs(%aw : tensor<64x32xf32>) {
  ^bb0(%x: f16, %unused: f32):
    %wide = arith.extf %x : f16 to f32
    linalg.yield %wide : f32
  } -> tensor<64x32xf32>
  %b2 = arith.extf %b : tensor<32x48xf16> to tensor<32x48xf32>
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul ins(%a3, %b2 : tensor<64x32xf32>, tensor<32x48xf32>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %sum : tensor<64x48xf32>
}

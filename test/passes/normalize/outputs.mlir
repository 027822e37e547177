// What a function returns beside C is kept by the same matmul, whose epilogue is computed once.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK:      %[[C:.*]] = "tile.matmul"
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:   %[[Z:.*]] = arith.negf %[[X]]
// CHECK-NEXT:   %[[T:.*]] = arith.truncf %[[Z]]
// CHECK-NEXT:   "tile.keep"(%[[Z]]) : (f32) -> ()
// CHECK-NEXT:   "tile.yield"(%[[T]]) : (bf16) -> ()
// CHECK:      %[[D:.*]] = "tile.kept"(%[[C]]) {number = 0 : i64}
// CHECK-NEXT: return %[[C]], %[[D]]
// CHECK-NOT:  linalg
#mn = affine_map<(m, n) -> (m, n)>
func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>) -> (tensor<64x48xbf16>, tensor<64x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %small = tensor.empty() : tensor<64x48xbf16>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x48xf16>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  %both:2 = linalg.generic {indexing_maps = [#mn, #mn, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%sum : tensor<64x48xf32>) outs(%small, %empty : tensor<64x48xbf16>, tensor<64x48xf32>) {
  ^bb0(%x: f32, %o0: bf16, %o1: f32):
    %z = arith.negf %x : f32
    %t = arith.truncf %z : f32 to bf16
    linalg.yield %t, %z : bf16, f32
  } -> (tensor<64x48xbf16>, tensor<64x48xf32>)
  return %both#0, %both#1 : tensor<64x48xbf16>, tensor<64x48xf32>
}

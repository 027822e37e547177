// Elements times the scales of their blocks are operands with block scales; the scales stay as they are.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-NOT: linalg
// CHECK:      "tile.scaled_matmul"(%arg0, %arg2, %arg1, %arg3) ({
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):
// CHECK:      block = 32

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 32)>
#sb = affine_map<(m, n, k) -> (n, k floordiv 32)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%a: tensor<40x96xf8E4M3FN>, %s: tensor<40x3xf8E8M0FNU>,
             %b: tensor<72x96xf8E5M2>, %t: tensor<72x3xf8E8M0FNU>) -> tensor<40x72xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x72xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x72xf32>) -> tensor<40x72xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %s, %b, %t : tensor<40x96xf8E4M3FN>, tensor<40x3xf8E8M0FNU>,
        tensor<72x96xf8E5M2>, tensor<72x3xf8E8M0FNU>)
    outs(%init : tensor<40x72xf32>) {
  ^bb0(%x: f8E4M3FN, %u: f8E8M0FNU, %y: f8E5M2, %v: f8E8M0FNU, %sum: f32):
    %x1 = arith.extf %x : f8E4M3FN to f32
    %u1 = arith.extf %u : f8E8M0FNU to f32
    %y1 = arith.extf %y : f8E5M2 to f32
    %v1 = arith.extf %v : f8E8M0FNU to f32
    %p = arith.mulf %x1, %u1 : f32
    %q = arith.mulf %y1, %v1 : f32
    %r = arith.mulf %p, %q : f32
    %next = arith.addf %sum, %r : f32
    linalg.yield %next : f32
  } -> tensor<40x72xf32>
  return %c : tensor<40x72xf32>
}

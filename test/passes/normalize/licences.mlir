// Licences are dropped, visibility and comments ignored, and pure ops that nothing uses erased.
// RUN: tilewright opt %s --passes normalize | filecheck %s

// CHECK-LABEL: func.func private @licences
// CHECK-NOT:   fastmath
// CHECK-NOT:   overflow
// CHECK:       "tile.matmul"
// CHECK-NEXT:  ^bb0(%[[ACC:.*]]: f32):
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[ACC]], %[[ACC]] : f32
// CHECK-NEXT:    %[[T:.*]] = arith.truncf %[[S]] : f32 to bf16
// CHECK-NEXT:    "tile.yield"(%[[T]])
// CHECK:       {a_major = "k", b_major = "mn"}
// CHECK-NEXT:  return
#mn = affine_map<(i, j) -> (i, j)>
func.func private @licences(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>) -> tensor<64x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1> : tensor<64x64xi32>
  %two = arith.addi %one, %one overflow<nsw, nuw> : tensor<64x64xi32>
  %empty = tensor.empty() : tensor<64x64xf32>
  %into = tensor.empty() : tensor<64x64xbf16>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<64x32xbf16>, tensor<32x64xbf16>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  %unused = math.exp %sum fastmath<fast> : tensor<64x64xf32>
  %c = linalg.generic {doc = "twice", indexing_maps = [#mn, #mn],
    iterator_types = ["parallel", "parallel"]}
    ins(%sum : tensor<64x64xf32>) outs(%into : tensor<64x64xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %s = arith.addf %x, %x fastmath<nnan, ninf, contract> : f32
    %t = arith.truncf %s to_nearest_even : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x64xbf16>
  return %c : tensor<64x64xbf16>
}

// A pass of the user's own: loads take the steps along K in reverse (docs/own-pass.md).
// RUN: tilewright opt %s --load %S/../../../examples/own_pass.py --passes 'tiling{tile=64x16x64},tma-insertion,reverse-k' | filecheck %s

// CHECK:     scf.for %[[K:.*]] = %{{.*}} to %[[STEPS:.*]] step
// CHECK:       %[[LAST:.*]] = arith.subi %[[STEPS]], %{{.*}} : index
// CHECK:       %[[STEP:.*]] = arith.subi %[[LAST]], %[[K]] : index
// CHECK-NEXT:  "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[STEP]])
// CHECK-NOT:   "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[K]])
func.func @f(%a: tensor<96x200xbf16>, %b: tensor<72x200xbf16>) -> tensor<96x72xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<96x200xbf16>, tensor<72x200xbf16>) -> tensor<96x72xf32>
  return %c : tensor<96x72xf32>
}

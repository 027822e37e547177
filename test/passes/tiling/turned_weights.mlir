// Where wgmma multiplies, weights are A, which threads widen in registers: A and B are exchanged, and
// rows of sums are columns of C. Products of groups are added apart.
// RUN: tilewright opt %s --passes 'tiling{tile=128x32x64 mma=wgmma.mma_async+cvt+fma swap=true}' --target sm_90a | filecheck %s

// CHECK-NOT: tile.weight_matmul
// CHECK: tile.mma_unit = "wgmma.mma_async+cvt+fma"
// CHECK: ^bb0(%[[A:.*]]: memref<48x256xbf16, 1>, %[[B:.*]]: memref<200x128xui8, 1>, %[[S:.*]]: memref<200x2xbf16, 1>, %[[Z:.*]]: memref<200x2xui8, 1>
// CHECK: %[[PLACE:.*]]:2 = "tile.cta_tile"() : () -> (index, index)
// CHECK: "tile.transposed"{{.*}}memref<48x200xf32, 1>
// CHECK: scf.for %[[K:.*]] = %
// CHECK: %[[W:.*]] = "tile.load"(%[[B]], %[[PLACE]]#0, %[[K]]){{.*}} -> !tile.smem<tensor<128x32xui8>, "k", "none">
// CHECK: %[[X:.*]] = "tile.load"(%[[A]], %[[PLACE]]#1, %[[K]]){{.*}} -> !tile.smem<tensor<32x64xbf16>, "k", "none">
// CHECK: "tile.exchanged_weight_mma"(%{{.*}}, %[[W]], %[[X]], %{{.*}}, %[[PLACE]]#0, %[[K]], %[[S]], %[[Z]]) {b_type = "u4", group = 128 : i64
// CHECK: tile.swapped
func.func @f(%a: tensor<48x256xbf16>, %b: tensor<200x256xui4>, %s: tensor<200x2xbf16>,
             %z: tensor<200x2xui8>) -> tensor<48x200xf32> {
  %c = "tile.weight_matmul"(%a, %b, %s, %z) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 128 : i64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1>}
    : (tensor<48x256xbf16>, tensor<200x256xui4>, tensor<200x2xbf16>, tensor<200x2xui8>)
    -> tensor<48x200xf32>
  return %c : tensor<48x200xf32>
}

// Weights of four bits lie two to a byte: their views and tiles are of bytes. Scales and zero points
// stay in global memory, where threads read them, and the kernel multiplies by mma.sync.
// RUN: tilewright opt %s --passes 'tiling{tile=16x64x128}' --target sm_90a | filecheck %s

// CHECK-NOT: tile.weight_matmul
// CHECK: tile.mma_unit = "mma.sync"
// CHECK: memref<48x256xbf16, 1>, {{.*}}memref<200x128xui8, 1>, {{.*}}memref<200x2xbf16, 1>, {{.*}}memref<200x2xui8, 1>
// CHECK: scf.for %[[K:.*]] =
// CHECK: tile.load{{.*}} -> !tile.smem<tensor<16x128xbf16>, "k", "none">
// CHECK: tile.load{{.*}} -> !tile.smem<tensor<64x64xui8>, "k", "none">
// CHECK: tile.weight_mma{{.*}}%[[K]]{{.*}} {b_type = "u4", group = 128 : i64
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

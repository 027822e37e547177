// Warps multiply operands with block scales: a lane loads a word of four scales for each 16 rows of
// A and each 8 columns of B of its warp, and the four MMAs along K name its bytes one after the other.

// RUN: tilewright opt %s --passes 'normalize,tiling{tile=128x32x128 warps=4x1},swizzle-selection,select-instructions' | filecheck %s

// CHECK:         "sm.kernel"
// CHECK-COUNT-6: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK-COUNT-8: "sm.scaled_mma_sync"({{.*}}) {a_type = "e4m3", b_type = "e4m3", block = 32 : i64, id = 0 : i64, kind = "mxf8f6f4", scale = "ue8m0"}
// CHECK-COUNT-8: "sm.scaled_mma_sync"({{.*}}) {a_type = "e4m3", b_type = "e4m3", block = 32 : i64, id = 1 : i64, kind = "mxf8f6f4", scale = "ue8m0"}
// CHECK:         id = 3 : i64
// CHECK-NOT:     tile.scaled_mma
module attributes {tile.target = "sm_120a"} {
func.func @matmul(%a: tensor<128x256xf8E4M3FN>, %b: tensor<32x256xf8E4M3FN>, %a_scales: tensor<1x2x32x4x4xf8E8M0FNU>, %b_scales: tensor<1x2x32x4x4xf8E8M0FNU>) -> tensor<128x32xf32> {
  %c = "tile.scaled_matmul"(%a, %b, %a_scales, %b_scales) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64}
    : (tensor<128x256xf8E4M3FN>, tensor<32x256xf8E4M3FN>, tensor<1x2x32x4x4xf8E8M0FNU>, tensor<1x2x32x4x4xf8E8M0FNU>) -> tensor<128x32xf32>
  return %c : tensor<128x32xf32>
}
}

// A K step copies its atoms of scales to tensor memory, and each K slice names the byte of its own.
// The tail of K, 160 = 128 + 32, has one slice: the others are left out of the last step.
// RUN: tilewright opt %s --passes 'tiling{tile=128x64x128},tma-insertion,swizzle-selection,select-instructions' | filecheck %s

// CHECK: "sm.tmem_copy"({{.*}}) {cta_group = 1 : i64, offset = 0 : i64, rows = 32 : i64}
// CHECK: "sm.tmem_copy"({{.*}}) {cta_group = 1 : i64, offset = 0 : i64, rows = 32 : i64}
// CHECK: "sm.scaled_mma"({{.*}}) {a_id = 0 : i64, {{.*}} b_id = 0 : i64, {{.*}} kind = "mxf8f6f4"
// CHECK: scf.if
// CHECK: "sm.scaled_mma"({{.*}}) {a_id = 1 : i64, {{.*}} a_offset = 32 : i64, {{.*}} b_id = 1 : i64
// CHECK: scf.if
// CHECK: "sm.scaled_mma"({{.*}}) {a_id = 2 : i64, {{.*}} a_offset = 64 : i64
// CHECK: scf.if
// CHECK: "sm.scaled_mma"({{.*}}) {a_id = 3 : i64, {{.*}} a_offset = 96 : i64
// CHECK-NOT: tile.scaled_mma
func.func @f(%a: tensor<128x160xf8E4M3FN>, %b: tensor<64x160xf8E5M2>,
             %s: tensor<1x2x32x4x4xf8E8M0FNU>, %t: tensor<1x2x32x4x4xf8E8M0FNU>)
    -> tensor<128x64xf32> {
  %c = "tile.scaled_matmul"(%a, %b, %s, %t) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64}
    : (tensor<128x160xf8E4M3FN>, tensor<64x160xf8E5M2>, tensor<1x2x32x4x4xf8E8M0FNU>,
       tensor<1x2x32x4x4xf8E8M0FNU>) -> tensor<128x64xf32>
  return %c : tensor<128x64xf32>
}

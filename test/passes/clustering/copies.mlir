// Rows of an odd number of bytes are copied by threads: each CTA of a pair copies half of B into its
// own slots, and the warps of both, four each, make a slot of the leader CTA full.
// RUN: tilewright opt %s --passes 'tiling{tile=128x64x64},tma-insertion,clustering{shape=4x1 pair=true},warp-specialization,assign-threads,plan-memory' 2>&1 | filecheck %s

// CHECK: remark: clustering: every CTA copies all of b by its threads
// CHECK: arrivals = 8 : i64, label = "operands.full"
// CHECK: arrivals = 1 : i64, label = "operands.empty"
// CHECK-NOT: "tile.mma"
// CHECK: "tile.copy"(%arg0, %{{.*}}) {{.*}} !tile.smem<tensor<128x64xbf16>, "k", "none">
// CHECK: %[[TWICE:.*]] = arith.muli
// CHECK: %[[HALF:.*]] = arith.addi %[[TWICE]], %{{.*}} : index
// CHECK: "tile.copy"(%arg1, %{{.*}}, %[[HALF]], %{{.*}}) {{.*}} !tile.smem<tensor<32x64xbf16>, "k", "none">
// CHECK: "tile.pair_mma"
// CHECK: cluster = [4, 1, 1]
func.func @f(%a: tensor<512x333xbf16>, %b: tensor<200x333xbf16>) -> tensor<512x200xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k"}
    : (tensor<512x333xbf16>, tensor<200x333xbf16>) -> tensor<512x200xf32>
  return %c : tensor<512x200xf32>
}

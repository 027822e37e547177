// Lanes that share elements read the views in parts of K, and add up behind the loop what they have.
// RUN: tilewright opt %s --passes 'tiling{tile=2x8x512 mma=fma operands=global lanes=32}' | filecheck %s
// RUN: tilewright opt %s --passes 'tiling{tile=2x2x512 mma=fma operands=global lanes=64},assign-threads,plan-memory' | filecheck %s --check-prefix WARPS

// CHECK: tile.mma_unit = "fma"
// CHECK: scf.for
// CHECK-NOT: tile.load
// CHECK: "tile.lane_mma"({{.*}}) {depth = 512 : i64, lanes = 32 : i64}
// CHECK: }
// CHECK: "tile.add_lanes"({{%[^,]*}}) {lanes = 32 : i64,
// CHECK-NEXT: "tile.store"
// CHECK: grid = [1, 2, 1], sym_name = "f", threads = 256
// WARPS: "sm.shared_memory"() {bytes = 32 : i64}
// WARPS: %[[PARTS:.*]] = "sm.tile_memory"() {offset = 0 : i64}
// WARPS: "tile.add_lanes"({{.*}}, %[[PARTS]]) {lanes = 64 : i64,
func.func @f(%a: tensor<2x1024xf32>, %b: tensor<16x1024xf32>) -> tensor<2x16xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<2x1024xf32>, tensor<16x1024xf32>) -> tensor<2x16xf32>
  return %c : tensor<2x16xf32>
}

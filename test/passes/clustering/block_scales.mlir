// A pair halves B's rows, but each of its CTAs loads the scales of all of the pair's columns.
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,clustering{shape=2x1 pair=true}' | filecheck %s

// CHECK-NOT: "tile.scaled_mma"
// CHECK: %[[MAP:.*]] = "tile.tensor_map"(%arg3) {{.*}} -> !tile.map<f8E8M0FNU, [256, 16, 2], [256, 4096], [256, 2, 2], "none">
// CHECK: "tile.tma_load"(%{{.*}} !tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">
// CHECK: "tile.tma_load"(%[[MAP]], %{{.*}}, %{{.*}}#1, %{{.*}}) : {{.*}} !tile.smem<tensor<256x4xf8E8M0FNU>, "k", "blocked">
// CHECK: "tile.scaled_pair_mma"
func.func @f(%a: tensor<512x1024xf8E4M3FN>, %b: tensor<256x1024xf8E4M3FN>,
             %s: tensor<4x8x32x4x4xf8E8M0FNU>, %t: tensor<2x8x32x4x4xf8E8M0FNU>)
    -> tensor<512x256xf32> {
  %c = "tile.scaled_matmul"(%a, %b, %s, %t) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64}
    : (tensor<512x1024xf8E4M3FN>, tensor<256x1024xf8E4M3FN>, tensor<4x8x32x4x4xf8E8M0FNU>,
       tensor<2x8x32x4x4xf8E8M0FNU>) -> tensor<512x256xf32>
  return %c : tensor<512x256xf32>
}

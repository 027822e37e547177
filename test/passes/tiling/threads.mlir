// Threads that multiply by themselves take any tile: linear tiles, whole operands, or the views.
// RUN: tilewright opt %s --passes 'tiling{tile=3x5x7 mma=fma}' | filecheck %s --check-prefix TILES
// RUN: tilewright opt %s --passes 'tiling{tile=3x5x7 mma=fma operands=whole}' | filecheck %s --check-prefix WHOLE
// RUN: tilewright opt %s --passes 'tiling{tile=64x64x7 mma=fma threads=64 operands=global}' | filecheck %s --check-prefix GLOBAL

// TILES: tile.mma_unit = "fma"
// TILES: !tile.smem<tensor<3x7xf32>, "k", "linear">
// TILES: !tile.smem<tensor<5x7xf32>, "mn", "linear">
// TILES: grid = [4, 2, 1], sym_name = "f", threads = 32
// WHOLE: !tile.smem<tensor<3x14xf32>, "k", "linear">
// GLOBAL-NOT: tile.load
// GLOBAL: "tile.view_mma"({{.*}}) {depth = 7 : i64}
// GLOBAL: threads = 64
func.func @f(%a: tensor<12x9xf32>, %b: tensor<9x10xf32>) -> tensor<12x10xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "mn"} : (tensor<12x9xf32>, tensor<9x10xf32>) -> tensor<12x10xf32>
  return %c : tensor<12x10xf32>
}

// RUN: tilewright opt %s --passes 'normalize,tiling{tile=128x64x64}' | filecheck %s
// RUN: tilewright opt %s --passes 'normalize,tiling{tile=128x64x64},tma-insertion,clustering{shape=2x1 pair=false}' | filecheck %s --check-prefix CLUSTER

// Three matrices of 257 rows have three tiles each; a is a stack, b is one matrix that all share.
// CHECK:     ^bb0(%[[A:.*]]: memref<3x257x72xbf16, 1>, %[[B:.*]]: memref<40x72xbf16, 1>, %[[C:.*]]: memref<3x257x40xf32, 1>):
// CHECK:     %[[PLACE:.*]]:2 = "tile.cta_tile"
// CHECK-NEXT: %[[OF:.*]]:2 = "tile.batch"(%[[PLACE]]#0) {count = 3 : i64, tiles = 3 : i64}
// CHECK-NEXT: %[[MATRIX:.*]] = "tile.matrix"(%[[A]], %[[OF]]#0)
// CHECK-NEXT: %[[RESULT:.*]] = "tile.matrix"(%[[C]], %[[OF]]#0)
// CHECK:     "tile.load"(%[[MATRIX]], %[[OF]]#1,
// CHECK:     "tile.load"(%[[B]], %[[PLACE]]#1,
// CHECK:     "tile.store"(%{{.*}}, %[[RESULT]], %[[OF]]#1, %[[PLACE]]#1)
// CHECK:     grid = [9, 1, 1]

// A cluster has tiles of one matrix: each matrix gets four. The map of a has the matrix as a dim.
// CLUSTER:   "tile.tensor_map"(%{{.*}}) : (memref<3x257x72xbf16, 1>) -> {{.*}}[72, 257, 3], [144, 37008], [8, 128, 1], "none">
// CLUSTER:   "tile.batch"(%{{.*}}) {count = 3 : i64, tiles = 4 : i64}
// CLUSTER:   grid = [12, 1, 1]
func.func @stacks(%a: tensor<3x257x72xbf16>, %b: tensor<40x72xbf16>) -> tensor<3x257x40xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x257x40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x257x40xf32>) -> tensor<3x257x40xf32>
  %all = tensor.empty() : tensor<3x40x72xbf16>
  %bs = linalg.broadcast ins(%b : tensor<40x72xbf16>) outs(%all : tensor<3x40x72xbf16>) dimensions = [0]
  %sum = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
                     affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %bs : tensor<3x257x72xbf16>, tensor<3x40x72xbf16>)
    outs(%init : tensor<3x257x40xf32>) -> tensor<3x257x40xf32>
  return %sum : tensor<3x257x40xf32>
}

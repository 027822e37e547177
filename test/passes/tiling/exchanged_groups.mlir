// With A and B exchanged rows of groups run along N: the group is that of the tile's N place, its matrix is the MMA's A, and the
// rows of C that are the group's are turned.
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=128x64x64 swap=true}' | filecheck %s

// CHECK:     ^bb0(%[[A:.*]]: memref<300x72xbf16, 1>, %[[B:.*]]: memref<3x200x72xbf16, 1>, %[[ENDS:.*]]: memref<3xi32, 1>, %[[C:.*]]: memref<300x200xbf16, 1>):
// CHECK:       %[[AT:.*]]:2 = "tile.cta_tile"()
// CHECK:       %[[GROUP:.*]]:4 = "tile.group"(%[[AT]]#1, %[[ENDS]]) {extent = 300 : i64, tile = 64 : i64, together = 1 : i64}
// CHECK:       %[[ROWS:.*]] = "tile.group_rows"(%[[A]], %[[GROUP]]#2, %[[GROUP]]#3)
// CHECK:       %[[MATRIX:.*]] = "tile.matrix"(%[[B]], %[[GROUP]]#0)
// CHECK:       %[[OF_C:.*]] = "tile.group_rows"(%[[C]], %[[GROUP]]#2, %[[GROUP]]#3)
// CHECK:       %[[TURNED:.*]] = "tile.transposed"(%[[OF_C]]) : (memref<300x200xbf16, 1>) -> memref<200x300xbf16, strided<[1, 200]>, 1>
// CHECK:       %[[TB:.*]] = "tile.load"(%[[MATRIX]], %[[AT]]#0, %{{.*}}) : {{.*}} -> !tile.smem<tensor<128x64xbf16>
// CHECK:       %[[TA:.*]] = "tile.load"(%[[ROWS]], %[[GROUP]]#1, %{{.*}}) : {{.*}} -> !tile.smem<tensor<64x64xbf16>
// CHECK:       "tile.mma"(%{{.*}}, %[[TB]], %[[TA]],
// CHECK:       "tile.store"(%{{.*}}, %[[TURNED]], %[[AT]]#0, %[[GROUP]]#1)

// Three groups of 300 rows have at most seven tiles of 64, and there are two along the columns of C.
// CHECK:     grid = [2, 7, 1]
// CHECK-SAME: tile.swapped
func.func @f(%a: tensor<300x72xbf16>, %b: tensor<3x200x72xbf16>, %ends: tensor<3xi32>) -> tensor<300x200xbf16> {
  %c = "tile.grouped_matmul"(%a, %b, %ends) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<300x72xbf16>, tensor<3x200x72xbf16>, tensor<3xi32>) -> tensor<300x200xbf16>
  return %c : tensor<300x200xbf16>
}

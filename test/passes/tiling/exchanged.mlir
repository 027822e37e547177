// With A and B exchanged a tile's rows run along N: its MMA takes tiles of B as A, and C is turned.
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=128x32x64 swap=true}' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=128x32x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging' | filecheck %s --check-prefix STAGED
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=64x40x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging' | filecheck %s --check-prefix EIGHTS

// CHECK:     ^bb0(%[[A:.*]]: memref<75x136xbf16, 1>, %[[B:.*]]: memref<200x136xbf16, 1>, %[[C:.*]]: memref<75x200xbf16, 1>):
// CHECK:       %[[AT:.*]]:2 = "tile.cta_tile"()
// CHECK:       %[[TURNED:.*]] = "tile.transposed"(%[[C]]) : (memref<75x200xbf16, 1>) -> memref<200x75xbf16, strided<[1, 200]>, 1>
// CHECK:       %[[TB:.*]] = "tile.load"(%[[B]], %[[AT]]#0, %{{.*}}) : {{.*}} -> !tile.smem<tensor<128x64xbf16>
// CHECK:       %[[TA:.*]] = "tile.load"(%[[A]], %[[AT]]#1, %{{.*}}) : {{.*}} -> !tile.smem<tensor<32x64xbf16>
// CHECK:       "tile.mma"(%[[ACC:.*]], %[[TB]], %[[TA]],
// CHECK:       "tile.store"(%{{.*}}, %[[TURNED]], %[[AT]]#0, %[[AT]]#1)
// CHECK:     grid = [2, 3, 1]
// CHECK-SAME: tile.swapped

// STAGED-NOT:  "tile.transposed"
// STAGED:      ^bb0(%{{.*}}: {{.*}}, %{{.*}}: {{.*}}, %[[C:.*]]: memref<75x200xbf16, 1>):
// STAGED:      %[[MAP:.*]] = "tile.tensor_map"(%[[C]]) : {{.*}} -> !tile.map<bf16, [200, 75], [400], [64, 32], "128B">
// STAGED:      "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "mn", "128B">]>
// STAGED:      "tile.staged_store"(%{{.*}}, %[[MAP]],
// STAGED:      write = "matrices"

// Tiles go by 8 columns along M, and a piece is any number of them that divides a tile's.
// EIGHTS:      "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [200, 75], [400], [64, 40], "128B">
// EIGHTS:      "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<64x40xbf16>, "mn", "128B">]>
// EIGHTS:      write = "matrices"
func.func @f(%a: tensor<75x136xbf16>, %b: tensor<200x136xbf16>) -> tensor<75x200xbf16> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<75x136xbf16>, tensor<200x136xbf16>) -> tensor<75x200xbf16>
  return %c : tensor<75x200xbf16>
}

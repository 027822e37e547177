// Sums of threads start from zero in front of the loop over K, and each row is stored by itself.
// RUN: tilewright opt %s --passes 'tiling{tile=16x8x4 mma=fma threads=64},assign-threads,plan-memory,expand-loops' | filecheck %s

// CHECK:      "tile.clear_sums"(%[[ACC:[0-9]+]])
// CHECK:      scf.for
// CHECK:        %[[TRUE:true[_0-9]*]] = arith.constant true
// CHECK:        "tile.mma"(%[[ACC]], {{.*}}, %[[TRUE]])
// CHECK:      "tile.sums_place"(%[[ACC]])
// CHECK:      "tile.sums_row"(%[[ACC]]) {number = 0 : i64} : {{.*}} -> vector<1xf32>
// CHECK:      "tile.sums_row"(%[[ACC]]) {number = 1 : i64}
// CHECK-NOT:  tile.store
func.func @f(%a: tensor<12x9xf32>, %b: tensor<10x9xf32>) -> tensor<12x10xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<12x9xf32>, tensor<10x9xf32>) -> tensor<12x10xf32>
  return %c : tensor<12x10xf32>
}

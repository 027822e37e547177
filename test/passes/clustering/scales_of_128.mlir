// Threads of both CTAs of a pair add the products of their rows: each loads the scales of these,
// and of all of the pair's columns, and waits for its own half of B.
// RUN: tilewright opt %s --passes 'tiling{tile=128x64x128},tma-insertion,clustering{shape=2x1 pair=true},warp-specialization,assign-threads,plan-memory' | filecheck %s

// CHECK:     "sm.barriers"() {arrivals = 1 : i64, label = "products.ready", {{.*}}slots = 2 : i64}
// CHECK:     %[[AT:.*]]:2 = "tile.cta_tile"
// CHECK-NEXT: %[[RANK:.*]] = "tile.pair_rank"
// CHECK-NOT: "tile.blockwise_mma"
// CHECK:     "tile.blockwise_pair_mma"({{.*}}, %[[AT]]#0, %[[AT]]#1, %{{.*}}) {a_form = "1x128", b_form = "1x128"} : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">, !tile.smem<tensor<32x128xf8E4M3FN>, "k", "none">, i1, !tile.smem<tensor<1x128xf32>, "k", "linear">, !tile.smem<tensor<1x64xf32>, "k", "linear">, index, index, index)
// CHECK:     %[[HALF:.*]] = arith.addi %{{.*}}, %[[RANK]] : index
// CHECK-NEXT: "tile.tma_load"(%{{.*}}, %{{.*}}, %[[HALF]], %{{.*}}) {{.*}}32x128xf8E4M3FN
// CHECK:     "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[AT]]#1) {{.*}}1x64xf32
func.func @f(%a: tensor<256x512xf8E4M3FN>, %b: tensor<128x512xf8E4M3FN>,
             %s: tensor<4x256xf32>, %t: tensor<4x128xf32>) -> tensor<256x128xf32> {
  %c = "tile.blockwise_matmul"(%a, %b, %s, %t) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_form = "1x128", a_major = "k", b_form = "1x128", b_major = "k"}
    : (tensor<256x512xf8E4M3FN>, tensor<128x512xf8E4M3FN>, tensor<4x256xf32>, tensor<4x128xf32>)
    -> tensor<256x128xf32>
  return %c : tensor<256x128xf32>
}

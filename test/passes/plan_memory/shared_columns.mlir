// Two places of an accumulator lie 24 columns less than its 256 apart; the scales follow both.
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,swizzle-selection,epilogue-staging,pipelining{stages=2},warp-specialization,persistence,assign-threads,plan-memory' | filecheck %s

// CHECK: "sm.scale_columns"(%{{.*}}) {a_first = 488 : i64, b_first = 492 : i64, end = 500 : i64, {{.*}}slots = 2 : i64}
// CHECK: "sm.columns"(%{{.*}}) {each = 256 : i64, first = 0 : i64, shared_columns = 24 : i64, slots = 2 : i64}
// CHECK: label = "accumulator.empty", offset = {{.*}}, slots = 1 : i64
func.func @f(%a: tensor<128x1024xf8E4M3FN>, %b: tensor<1024x1024xf8E4M3FN>,
             %s: tensor<1x8x32x4x4xf8E8M0FNU>, %t: tensor<8x8x32x4x4xf8E8M0FNU>)
    -> tensor<128x1024xf32> {
  %c = "tile.scaled_matmul"(%a, %b, %s, %t) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64}
    : (tensor<128x1024xf8E4M3FN>, tensor<1024x1024xf8E4M3FN>, tensor<1x8x32x4x4xf8E8M0FNU>,
       tensor<8x8x32x4x4xf8E8M0FNU>) -> tensor<128x1024xf32>
  return %c : tensor<128x1024xf32>
}

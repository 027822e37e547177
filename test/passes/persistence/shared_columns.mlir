// Two accumulators of 256 columns and the scales of two K steps are 24 columns too many: they share
// these. A store by threads reads a row at a time and keeps one accumulator.
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,swizzle-selection,epilogue-staging,pipelining{stages=2},warp-specialization,persistence' | filecheck %s
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,persistence' | filecheck %s --check-prefix ALONE

// CHECK:     "pipe.create"() {shared_columns = 24 : i64} : () -> !pipe.ring<1 : i64, [!tile.acc<tensor<128x256xf32>>]>
// ALONE-NOT: shared_columns
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

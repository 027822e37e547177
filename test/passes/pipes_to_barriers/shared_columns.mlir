// Of one slot with two places, the parity of its phase says which has its turn.
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,swizzle-selection,epilogue-staging,pipelining{stages=2},warp-specialization,persistence,assign-threads,plan-memory,expand-loops,pipes-to-barriers' | filecheck %s

// CHECK-NOT: "pipe.parity"
// CHECK:     %[[FILL:.*]] = "sm.position"() {label = "accumulator.fill", stages = 1 : i64}
// CHECK:     %[[READ:.*]] = "sm.position"() {label = "accumulator.read", stages = 1 : i64}
// CHECK:     %[[AT:.*]]:2 = "sm.read_position"(%[[READ]])
// CHECK:     "sm.barrier"(%{{.*}}, %[[AT]]#0)
// CHECK:     "sm.slot"(%[[RING:.*]], %[[AT]]#1) : (!pipe.ring<1 : i64, [!tile.acc
// CHECK:     arith.cmpi eq, %[[AT]]#1
// CHECK:     %[[NEXT:.*]]:2 = "sm.read_position"(%[[FILL]])
// CHECK:     "sm.slot"(%[[RING]], %[[NEXT]]#1) : (!pipe.ring<1 : i64, [!tile.acc
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

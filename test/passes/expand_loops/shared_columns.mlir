// The piece of 32 columns that has the 24 shared ones comes first, the last of an even tile and the
// first of an odd one. Then the sums are released, and the other seven pieces follow.
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x128},tma-insertion,swizzle-selection,epilogue-staging,pipelining{stages=2},warp-specialization,persistence,assign-threads,plan-memory,expand-loops' | filecheck %s

// CHECK:      %[[SUMS:.*]] = "tile.await_sums"
// CHECK:      %[[SOME:.*]] = arith.constant 32 : i32
// CHECK:      scf.for %[[X:.*]] = %{{.*}} to %[[SOME]] step
// CHECK:        %[[ODD:.*]] = "pipe.parity"(%[[SLOT:.*]])
// CHECK:        %[[LAST:.*]] = arith.subi %{{.*}}, %[[X]]
// CHECK:        %[[AT:.*]] = arith.select %{{.*}}, %[[X]], %[[LAST]]
// CHECK:        "tile.read_{{.*}}"(%[[SUMS]]{{.*}} %[[AT]]
// CHECK:      "pipe.release"
// CHECK:      scf.for
// CHECK:        "pipe.parity"(%[[SLOT]])
// CHECK-NOT:  "pipe.release"(%{{.*}}) : (!pipe.ring<1
// CHECK:      agent = "epilogue"
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

// Three CTAs share a tile of operands with block scales: elements, scales and the MMA, which is told
// where K ends, take the step of this CTA's part.
// RUN: tilewright opt %s --passes 'split-k{parts=3 over=grid}' | filecheck %s

// CHECK:      %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK:      %[[RANK:.*]] = "tile.split_rank"() : () -> index
// CHECK:      %[[FIRST:.*]] = arith.muli %[[RANK]],
// CHECK:      scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:   %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]]
// CHECK-NEXT:   %[[ADDS:.*]] = arith.cmpi ne, %[[K]],
// CHECK-NEXT:   "tile.load"(%{{.*}}, %[[IJ]]#0, %[[STEP]])
// CHECK-NEXT:   "tile.load"(%{{.*}}, %[[IJ]]#1, %[[STEP]])
// CHECK-NEXT:   "tile.load"(%{{.*}}, %[[IJ]]#0, %[[STEP]])
// CHECK-NEXT:   "tile.load"(%{{.*}}, %[[IJ]]#1, %[[STEP]])
// CHECK-NEXT:   "tile.scaled_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ADDS]], %{{.*}}, %{{.*}}, %[[IJ]]#1, %[[STEP]])
// CHECK-NOT:  "tile.store"
// CHECK:      cluster = [1, 1, 1], grid = [1, 1, 3]
!acc = !tile.acc<tensor<128x64xf32>>
!tile = !tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">
!tile2 = !tile.smem<tensor<64x128xf8E4M3FN>, "k", "none">
!tile3 = !tile.smem<tensor<128x4xf8E8M0FNU>, "k", "blocked">
!tile4 = !tile.smem<tensor<64x4xf8E8M0FNU>, "k", "blocked">
module attributes {tile.target = "sm_100a"} {
  "tile.kernel"() ({
  ^bb0(%a: memref<128x640xf8E4M3FN, 1>, %b: memref<64x640xf8E4M3FN, 1>, %a_scales: memref<1x5x32x4x4xf8E8M0FNU, 1>, %b_scales: memref<1x5x32x4x4xf8E8M0FNU, 1>, %c: memref<128x64xbf16, 1>):
    %i, %j = "tile.cta_tile"() : () -> (index, index)
    %acc = "tile.accumulator"() : () -> !acc
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    scf.for %k = %c0 to %c5 step %c1 {
      %adds = arith.cmpi ne, %k, %c0 : index
      %a_tile = "tile.load"(%a, %i, %k) : (memref<128x640xf8E4M3FN, 1>, index, index) -> !tile
      %b_tile = "tile.load"(%b, %j, %k) : (memref<64x640xf8E4M3FN, 1>, index, index) -> !tile2
      %a_scales_tile = "tile.load"(%a_scales, %i, %k) : (memref<1x5x32x4x4xf8E8M0FNU, 1>, index, index) -> !tile3
      %b_scales_tile = "tile.load"(%b_scales, %j, %k) : (memref<1x5x32x4x4xf8E8M0FNU, 1>, index, index) -> !tile4
      "tile.scaled_mma"(%acc, %a_tile, %b_tile, %adds, %a_scales_tile, %b_scales_tile, %j, %k) {a_type = "e4m3", b_type = "e4m3", block = 32 : i64, extent = 640 : i64, kind = "mxf8f6f4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>} : (!acc, !tile, !tile2, i1, !tile3, !tile4, index, index) -> ()
    }
    "tile.store"(%acc, %c, %i, %j) ({ ^bb0(%x: f32): %0 = arith.truncf %x : f32 to bf16 "tile.yield"(%0) : (bf16) -> () }) : (!acc, memref<128x64xbf16, 1>, index, index) -> ()
  }) {arg_names = ["a", "b", "a_scales", "b_scales", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "matmul_mxfp8_128x64x640", threads = 128 : i64} : () -> ()
}

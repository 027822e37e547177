// The load role takes the steps from one that its tile's place along N says; the MMAs count theirs as before,
// since they multiply what a slot holds. CTAs with 2 places begin alike, and the next ones 3 steps further on.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,pipelining{stages=2},warp-specialization,k-rotation{together=2 by=3}' | filecheck %s
// RUN: tilewright opt %s --target sm_100a --passes 'tma-insertion,pipelining{stages=2},warp-specialization,k-rotation{together=2 by=3}' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,k-rotation{together=2 by=3},assign-threads,plan-memory,expand-loops,pipes-to-barriers,select-instructions,lower-to-nvvm' | filecheck %s --check-prefix=LLVM

// CHECK:      %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK:          %[[STEP:.*]] = "tile.rotated_step"(%[[K:[a-z0-9]+]], %[[IJ]]#1) {by = 3 : i64, steps = 5 : i64, together = 2 : i64}
// CHECK:          "tile.tma_load"(%{{.*}}, %{{.*}}, %[[IJ]]#0, %[[STEP]])
// CHECK-NEXT:     "tile.tma_load"(%{{.*}}, %{{.*}}, %[[IJ]]#1, %[[STEP]])
// CHECK-NOT:    %[[K]]
// CHECK:      agent = "load"

// LLVM:      %[[INSIDE:.*]] = llvm.icmp "ult" %[[STEP:[0-9]+]], %[[STEPS:[0-9]+]] : i32
// LLVM-NEXT: %[[BEFORE:.*]] = llvm.sub %[[STEP]], %[[STEPS]]
// LLVM-NEXT: llvm.select %[[INSIDE]], %[[STEP]], %[[BEFORE]]
!a = memref<128x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<128x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

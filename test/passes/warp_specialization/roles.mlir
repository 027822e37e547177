// Each role keeps its agent's ops in one whole loop; rings are all that two roles have in common.
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining{stages=3},warp-specialization' | filecheck %s

// CHECK-NOT:  "tile.accumulator"
// CHECK:      %[[TILES:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64,
// CHECK:      %[[ACCS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.acc<tensor<128x64xf32>>]>
// CHECK-NOT:  scf.for
// CHECK:      "pipe.role"() ({
// CHECK:        %[[FULL:.*]] = "pipe.wait"(%[[ACCS]])
// CHECK-NEXT:   %[[SUM:.*]] = "pipe.tile"(%[[FULL]]) {index = 0 : i64}
// CHECK-NEXT:   "tile.store"(%[[SUM]],
// CHECK:        "pipe.release"(%[[ACCS]])
// CHECK-NEXT: }) {agent = "epilogue", warps = 4 : i64}
// CHECK:      "pipe.role"() ({
// CHECK:        scf.for %[[K:.*]] =
// CHECK-NEXT:     "pipe.acquire"(%[[TILES]])
// CHECK:          "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[K]])
// CHECK-NEXT:     "tile.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[K]])
// CHECK-NEXT:     "pipe.commit"(%[[TILES]])
// CHECK-NEXT:   }
// CHECK-NEXT: }) {agent = "load", warps = 1 : i64}
// CHECK:      "pipe.role"() ({
// CHECK:        %[[EMPTY:.*]] = "pipe.acquire"(%[[ACCS]])
// CHECK:        %[[ACC:.*]] = "pipe.tile"(%[[EMPTY]]) {index = 0 : i64}
// CHECK:        %[[STEPS:.*]] = arith.constant 5 : index
// CHECK:        scf.for %{{.*}} = %{{.*}} to %[[STEPS]] step
// CHECK:          "pipe.wait"(%[[TILES]])
// CHECK:          "tile.mma"(%[[ACC]],
// CHECK-NEXT:     "pipe.release"(%[[TILES]])
// CHECK-NEXT:   }
// CHECK-NEXT:   "pipe.commit"(%[[ACCS]])
// CHECK-NEXT: }) {agent = "mma", warps = 1 : i64}
// CHECK-NOT:  "tile.
// CHECK:      threads = 192 : i64
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<256x256xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

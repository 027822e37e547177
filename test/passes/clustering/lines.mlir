// A line of CTAs along one axis shares one operand only; the grid is rounded up to whole clusters.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=1x4}' | filecheck %s --check-prefix N
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=4x1 pair=false}' | filecheck %s --check-prefix M

// N-NOT: axis = "m"
// N:     "tile.tma_multicast"(%{{.*}}, %{{.*}}, %[[AT:.*]]#0, %{{.*}}) {axis = "n", parts = 4 : i64} : (!tile.map<bf16, [256, 256], [512], [8, 32], "none">
// N-NEXT: "tile.tma_load"(%{{.*}}, %{{.*}}, %[[AT]]#1, %{{.*}})
// N-NOT: "tile.tma_multicast"
// N:     cluster = [1, 4, 1], grid = [2, 4, 1]

// M-NOT: axis = "n"
// M:     "tile.tma_load"(%{{.*}}, %{{.*}}, %[[AT:.*]]#0, %{{.*}})
// M-NEXT: "tile.tma_multicast"(%{{.*}}, %{{.*}}, %[[AT]]#1, %{{.*}}) {axis = "m", parts = 4 : i64} : (!tile.map<bf16, [256, 256], [512], [8, 16], "none">
// M-NOT: "tile.tma_load"
// M:     cluster = [4, 1, 1], grid = [4, 4, 1]
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
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
  %steps = arith.constant 4 : index
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

// The threads that store a piece learn at the meeting before it that a flag holds, and only then have
// the number by which 1 / (1 + exp(-x)) begins: ptxas can compute no piece earlier. Fast functions have
// one such number; what follows has its numbers as they are.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,epilogue-staging{columns=32 buffers=2},select-instructions' | filecheck %s

// CHECK:       %[[HOLDS:[0-9a-z_]+]] = "sm.any_barrier"(%true{{[0-9_]*}}) {id = 0 : i64, threads = 128 : i64}
// CHECK-NEXT:  %[[OTHER:[0-9a-z_]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:  %[[NUMBER:[0-9a-z_]+]] = arith.constant -1.44269502 : f32
// CHECK-NEXT:  %[[LATE:[0-9a-z_]+]] = arith.select %[[HOLDS]], %[[NUMBER]], %[[OTHER]] : f32
// CHECK:       %[[PAIR:[0-9a-z_]+]] = vector.broadcast %[[LATE]] : f32 to vector<2xf32>
// CHECK:       math.fma %{{.*}}, %[[PAIR]], %{{.*}} : vector<2xf32>
// CHECK:       "sm.approximate"(%{{.*}}) {function = "ex2.ftz"}
// CHECK:       "sm.stmatrix"
// CHECK:       "sm.named_barrier"
// CHECK:       "sm.tma_store"
// CHECK:       "sm.any_barrier"
// CHECK:       "sm.tma_store"
// CHECK-NOT:   "sm.any_barrier"
!a = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !a, %c: !a):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!a, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %unit = arith.constant 1.0 : f32
    %minus = arith.negf %x : f32
    %e = math.exp %minus : f32
    %under = arith.addf %e, %unit : f32
    %share = arith.divf %unit, %under : f32
    %y = arith.truncf %share : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !a, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "matmul", threads = 128 : i64} : () -> ()

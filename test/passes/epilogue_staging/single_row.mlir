// The single row of C is 500 bytes: TMA would write the whole last 16, past its end. Threads store it.
// RUN: tilewright opt %s --passes epilogue-staging 2>&1 | filecheck %s

// CHECK:     remark: epilogue-staging: c is stored by threads: its rows must be whole units of 16 bytes, got 500 bytes
// CHECK-NOT: pipe.create
// CHECK-NOT: tile.staged_store
// CHECK:     "tile.store"(%{{.*}}, %{{.*}}, %{{.*}}#0, %{{.*}}#1)
// CHECK-NOT: tile.staged_store
!a = memref<1x256xbf16, 1>
!b = memref<250x256xbf16, 1>
!c = memref<1x250xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

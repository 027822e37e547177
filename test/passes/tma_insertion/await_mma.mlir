// With accumulators in registers, whoever issues MMAs waits for them before a release; with tensor
// memory, the release follows the MMAs by itself.
// RUN: tilewright opt %s --target sm_90a --passes tma-insertion | filecheck %s
// RUN: tilewright opt %s --passes tma-insertion | filecheck %s --check-prefix TENSOR

// CHECK:      "tile.mma"
// CHECK-NEXT: "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT: "pipe.release"
// TENSOR-NOT: tile.await_mma
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

// Without TMA threads store the pieces to C itself; all that a tile has are written before they meet.
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,epilogue-staging' 2>&1 | filecheck %s
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,epilogue-staging{columns=32 buffers=2}' | filecheck %s --check-prefix TWO

// CHECK-NOT: remark
// CHECK-NOT: tile.tensor_map
// CHECK:     %[[C:[a-z0-9]+]]: memref<256x250xbf16, 1>)
// CHECK:     %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">]>
// CHECK:     "tile.staged_store"(%{{.*}}, %[[C]], %[[RING]], %{{.*}}#0, %{{.*}}#1)
// CHECK:     }) {write = "rows"}
// CHECK-NOT: "tile.store"

// TWO:       "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x250xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x128xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()

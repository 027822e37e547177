// Left to itself the pass takes what shared memory holds: here (232448 - 1024) / 49152 = 4 slots.
// Two staging buffers of 16384 bytes cost one of them, two of 8192 none.
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining' | filecheck %s --check-prefix FOUR
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging{buffers=3},pipelining' | filecheck %s --check-prefix THREE
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging{columns=32},pipelining' | filecheck %s --check-prefix STILL

// FOUR:  !pipe.ring<4 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<256x64xbf16>, "k", "none">]>
// THREE: !pipe.ring<3 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<256x64xbf16>, "k", "none">]>
// STILL: !pipe.ring<4 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<256x64xbf16>, "k", "none">]>
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<256x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x256xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 1, 1], sym_name = "f", threads = 128 : i64} : () -> ()

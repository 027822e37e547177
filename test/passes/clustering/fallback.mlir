// Left to itself the pass says why it makes no pair: N is no multiple of 32, or operands come through no pipe.
// RUN: tilewright opt %s --passes tma-insertion,clustering 2>&1 | filecheck %s --check-prefix SHAPE
// RUN: tilewright opt %s --passes clustering 2>&1 | filecheck %s --check-prefix COPY

// SHAPE:     remark: clustering: no 2-CTA MMAs: a pair needs N a multiple of 32, got 48
// SHAPE-NOT: "tile.pair_mma"
// SHAPE:     "tile.tma_load"
// SHAPE:     "tile.mma"
// SHAPE:     cluster = [1, 1, 1]

// COPY:      remark: clustering: a lone CTA: an operand comes through no pipe, and only its own CTA waits for it
// COPY-NOT:  "tile.pair_mma"
// COPY:      "tile.load"
// COPY:      cluster = [1, 1, 1]
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<48x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x48xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 6, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// One program loops too; tiles go to clusters, as many as `ctas` hold, and never more than tiles.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x2},persistence{ctas=7 order=m}' | filecheck %s --check-prefix FEW
// RUN: tilewright opt %s --passes 'persistence' | filecheck %s --check-prefix MANY

// FEW:        %[[ACC:.*]] = "tile.accumulator"()
// FEW:        "tile.for_each_tile"() ({
// FEW-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// FEW:          scf.for
// FEW:            "tile.pair_mma"(%[[ACC]],
// FEW:          "tile.store"(%[[ACC]], %{{.*}}, %[[I]], %[[J]])
// FEW:        }) {group = 8 : i64, order = "m", tiles = [2, 4]}
// FEW:        cluster = [2, 2, 1], grid = [2, 2, 1]

// MANY:       "tile.for_each_tile"
// MANY:       grid = [8, 1, 1]
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

// Rows of 7 units of 16 bytes need no swizzle: any 8 of them begin in 8 groups of banks.
// RUN: tilewright opt %s --target sm_90a --passes 'epilogue-staging{columns=56}' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'epilogue-staging' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'epilogue-staging,assign-threads,plan-memory,expand-loops' | filecheck %s --check-prefix LOOPS

// CHECK:       "tile.tensor_map"{{.*}} -> !tile.map<bf16, [336, 256], [672], [56, 64], "none">
// CHECK:       !pipe.ring<2 : i64, [!tile.smem<tensor<64x56xbf16>, "k", "linear">]>
// CHECK:       "tile.staged_store"
// CHECK:       write = "matrices"

// LOOPS-COUNT-3: "tile.tma_store"
// LOOPS-NOT:   "tile.tma_store"
!a = memref<256x256xbf16, 1>
!b = memref<336x256xbf16, 1>
!c = memref<256x336xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<168x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x168xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()

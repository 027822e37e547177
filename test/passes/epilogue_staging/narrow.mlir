// In a tile of 64 rows a thread has half of a row's columns: 16-byte pieces would be half written.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=8}' 2>&1 | filecheck %s --check-prefix NARROW
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=16}' 2>&1 | filecheck %s --check-prefix WIDE

// NARROW:     remark: epilogue-staging: c is stored by threads: a tile of 64 rows needs pieces of 32 bytes, got 16
// NARROW-NOT: "tile.staged_store"
// NARROW:     "tile.store"

// WIDE-NOT:   remark
// WIDE:       "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<64x16xbf16>, "k", "32B">]>
// WIDE:       "tile.staged_store"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x64xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

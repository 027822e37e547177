// Roles become teams of the warps that follow each other; a role's loop over tiles with nothing but
// ops of one lane is one region. Each team counts its threads anew. The lowering goes on from the printed text.
// RUN: tilewright opt %s --passes 'tma-insertion,warp-specialization,persistence,assign-threads' -o %t
// RUN: filecheck %s < %t
// RUN: tilewright opt %t --passes lower-to-nvvm | filecheck %s --check-prefix=LOWERED

// CHECK-NOT: "pipe.role"
// CHECK:     ^bb0
// CHECK-NEXT: %{{.*}}:3 = "sm.team"() : () -> (i32, i32, i1)
// CHECK:     "sm.warps"() ({
// CHECK-NEXT: %{{.*}}:3 = "sm.team"() : () -> (i32, i32, i1)
// CHECK-NOT: "sm.run"
// CHECK:     "tile.store"
// CHECK:     }) {agent = "epilogue", barrier = 1 : i64, first = 0 : i64, warps = 4 : i64}
// CHECK:     "sm.warps"() ({
// CHECK-NEXT:  %{{.*}}:3 = "sm.team"
// CHECK:       "sm.run"() ({
// CHECK-NEXT:    "tile.for_each_tile"
// CHECK-COUNT-2: "tile.tma_load"
// CHECK:       }) {by = "lane"}
// CHECK-NEXT:  "sm.converge"
// CHECK-NEXT: }) {agent = "load", barrier = 2 : i64, first = 4 : i64, warps = 1 : i64}
// CHECK:     "sm.warps"() ({
// CHECK:       "sm.run"() ({
// CHECK-NEXT:    "tile.for_each_tile"
// CHECK:           "tile.mma"
// CHECK:       }) {by = "lane"}
// CHECK:     }) {agent = "mma", barrier = 3 : i64, first = 5 : i64, warps = 1 : i64}

// LOWERED:     llvm.func @f
// LOWERED-NOT: "sm.
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

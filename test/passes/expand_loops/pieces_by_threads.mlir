// Threads write as many pieces as there are buffers, meet, and store those; then the next.
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,epilogue-staging{columns=32 buffers=3},expand-loops' | filecheck %s

// CHECK-NOT: tile.staged_store
// CHECK:     "sm.named_barrier"
// Four warps, two along N: of each piece of 32 columns one of the two has all, 4 times 16 rows.
// CHECK-COUNT-12: "tile.read_fragment"
// CHECK-NOT: "tile.write_words"
// CHECK:     "sm.named_barrier"
// A row of C is 500 bytes, so a thread moves words of 4: 16 of each row of a piece, 8 at a time.
// All rows lie in C, and of the columns the first 250.
// CHECK:     scf.for %{{.*}} = %{{.*}} to %c2048_i32{{.*}} step %c1024_i32
// CHECK-COUNT-8: "tile.part_place"(%{{.*}}, %{{.*}}, %{{.*}}) {bytes = 4 : i64}
// CHECK-COUNT-8: llvm.load {{.*}} -> vector<1xi32>
// CHECK-NEXT: %[[ROW:.*]] = arith.addi
// CHECK:     %[[COLUMN:.*]] = arith.addi
// CHECK:     %[[INSIDE:.*]] = arith.cmpi ult, %[[COLUMN]], %c250_i32
// CHECK-NEXT: scf.if %[[INSIDE]]
// CHECK-NEXT: "tile.write_words"(%{{.*}}, %{{.*}}, %[[ROW]], %[[COLUMN]])
// CHECK-COUNT-23: "tile.write_words"
// CHECK-NOT: "tile.write_words"
// CHECK:     "sm.named_barrier"
// CHECK:     "tile.read_fragment"
// CHECK-COUNT-3: "tile.next_buffer"
// CHECK:     "sm.named_barrier"
// CHECK-COUNT-8: "tile.write_words"
// CHECK-NOT: "tile.write_words"
// CHECK-COUNT-3: "tile.next_buffer"
// CHECK-NOT: "sm.bulk_wait"
// CHECK-NOT: "tile.read_fragment"
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

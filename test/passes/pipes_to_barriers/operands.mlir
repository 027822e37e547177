// MMAs are told of tiles by descriptors: those of the first slot stand once behind the ring, LBO, SBO, swizzle
// and version by name, and an operand is one of them moved on to the slot that was waited for.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,pipelining{stages=2},pipes-to-barriers' | filecheck %s

// CHECK:      %[[MEMORY:.*]] = "sm.slot_memory"
// CHECK:      "sm.ring"(%{{.*}}, %[[MEMORY]])
// CHECK:      %[[A:.*]] = "sm.base_descriptor"(%[[MEMORY]]) {tile = 0 : i64} : {{.*}} -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
// CHECK-NEXT: %[[B:.*]] = "sm.base_descriptor"(%[[MEMORY]]) {tile = 1 : i64} : {{.*}} -> !sm.descriptor<{base_offset = 0 : i64, lbo = 8192 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
// CHECK-NOT:  "sm.base_descriptor"
// CHECK:      "sm.wait_barrier"
// CHECK:      "sm.wait_barrier"
// CHECK:      %[[SLOT:.*]] = "sm.slot"
// CHECK-NEXT: %[[A_TILE:.*]] = "sm.operand"(%[[SLOT]], %[[A]])
// CHECK-NEXT: %[[B_TILE:.*]] = "sm.operand"(%[[SLOT]], %[[B]])
// CHECK:      "tile.mma"(%{{.*}}, %[[A_TILE]], %[[B_TILE]],
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, strided<[1, 256]>, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "mn", "none">
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

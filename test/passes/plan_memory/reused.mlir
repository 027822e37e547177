// Buffers of a store by threads lie where operands lay, if the CTA has one tile: 32768 bytes of both.
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,epilogue-staging,pipelining{stages=1},plan-memory' | filecheck %s
// RUN: tilewright opt %s --target sm_80 --passes 'copy-insertion,epilogue-staging,pipelining{stages=1},persistence,plan-memory' | filecheck %s --check-prefix LOOP

// CHECK:     "sm.shared_memory"() {bytes = 32768 : i64}
// CHECK:     %[[MEMORY:.*]] = "sm.slot_memory"() {offsets = [0], slots = 2 : i64}
// CHECK:     "sm.staging"(%[[MEMORY]])
// CHECK:     "sm.slot_memory"() {offsets = [0, 16384], slots = 1 : i64}

// LOOP:      "sm.shared_memory"() {bytes = 65536 : i64}
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

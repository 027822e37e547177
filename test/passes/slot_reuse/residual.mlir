// A residual of 4 pieces comes when a slot of A is left: behind the last of 12 K steps, in the
// bytes of slot 0. L2 is asked for a piece in each of 4 steps before.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=2},pipelining{stages=4},warp-specialization,slot-reuse' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=2},pipelining{stages=4},warp-specialization,slot-reuse,assign-threads,plan-memory,expand-loops' | filecheck %s --check-prefix LOOPS
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=4},pipelining{stages=3},warp-specialization,slot-reuse' | filecheck %s --check-prefix OWN
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=4},pipelining{stages=3},warp-specialization,slot-reuse,assign-threads,plan-memory,expand-loops' | filecheck %s --check-prefix STEPS

// With a slot for each piece, a piece comes in each of 4 steps in the middle, and nothing is drained.
// OWN:         }) {agent = "consumer"
// OWN:         "pipe.commit"
// OWN-NEXT:    }
// OWN-NEXT:    "tile.load_ahead"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {pieces = 4 : i64}
// OWN-NEXT:    }) {agent = "load"
// OWN-NOT:     pipe.drain

// STEPS:       scf.for %{{.*}} = %{{.*}} to %[[FOUR:c4[_0-9]*]]
// STEPS-NOT:   tile.load_piece
// STEPS:       scf.for %{{.*}} = %[[FOUR]] to %[[EIGHT:c8[_0-9]*]]
// STEPS:         "tile.load_piece"
// STEPS:       scf.for %{{.*}} = %[[EIGHT]] to
// STEPS-NOT:   tile.load_piece

// CHECK:       %[[PIECES:.*]] = "pipe.create"() : () -> !pipe.ring<4 : i64, [!tile.smem<tensor<128x16xbf16>, "k", "32B">]>
// CHECK:       %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<4 : i64, [!tile.smem<tensor<128x64xbf16>
// CHECK:       %[[TILE:.*]]:2 = "tile.cta_tile"
// CHECK:       "pipe.role"() ({
// CHECK-NOT:   tile.load_ahead
// CHECK:       "tile.staged_element"(%{{.*}}, %[[PIECES]])
// CHECK:       }) {agent = "consumer"
// CHECK:       scf.for
// CHECK:         "pipe.commit"(%[[RING]])
// CHECK-NEXT:  }
// CHECK-NEXT:  "pipe.drain"(%[[RING]]) {slots = 1 : i64}
// CHECK-NEXT:  "tile.load_ahead"(%{{.*}}, %[[PIECES]], %[[TILE]]#0, %[[TILE]]#1) {pieces = 4 : i64}
// CHECK-NEXT:  }) {agent = "load"

// LOOPS:       %[[AB:.*]] = "sm.slot_memory"() {offsets = [0, 65536], slots = 4 : i64}
// LOOPS:       %[[MEMORY:.*]] = "sm.slot_memory"() {offsets = [0], slots = 4 : i64}
// LOOPS:       "sm.reused_ring"(%{{.*}}, %[[MEMORY]], %[[AB]])
// LOOPS:       scf.for %{{.*}} = %{{.*}} to %[[FOUR:c4[_0-9]*]]
// LOOPS-NOT:   tile.prefetch_boxes
// LOOPS:       scf.for %{{.*}} = %[[FOUR]] to %[[EIGHT:c8[_0-9]*]]
// LOOPS:         "tile.prefetch_boxes"
// LOOPS:       scf.for %{{.*}} = %[[EIGHT]] to
// LOOPS-NOT:   tile.prefetch_boxes
// LOOPS:       "pipe.drain"(%{{.*}}) {slots = 1 : i64}
// LOOPS-COUNT-4: "tile.load_piece"
!a = memref<256x768xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !a, %r: !c, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 12 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!a, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%r) {axes = "mn"} : (!c) -> bf16
    %wide = arith.extf %e : bf16 to f32
    %s = arith.addf %x, %wide : f32
    %y = arith.truncf %s : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "r", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

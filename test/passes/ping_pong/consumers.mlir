// Two consumers take every other tile in turn, each skips the slots of the other's 5 K steps; a ring
// of one turn keeps the MMAs of a tile together, and what follows the last of them overlaps.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,epilogue-staging{buffers=6},pipelining{stages=3},warp-specialization,persistence{ctas=2 order=n},ping-pong' | filecheck %s

// CHECK:      %[[PING_STAGING:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<64x64xbf16>, "k", "128B">]>
// CHECK-NEXT: %[[PONG_STAGING:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<64x64xbf16>, "k", "128B">]>
// CHECK:      %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<64x64xbf16>
// CHECK:      %[[TURNS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!pipe.turn]>
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 232 : i64}
// CHECK-NEXT:   %[[PING:.*]] = "tile.accumulator"() : () -> !tile.acc<tensor<64x128xf32>>
// CHECK-NEXT:   "pipe.for_each_turn"() ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:     "pipe.acquire"(%[[TURNS]])
// CHECK-NEXT:     "pipe.wait"(%[[RING]])
// CHECK:          scf.for
// CHECK:            "tile.mma"(%[[PING]],
// CHECK-NEXT:       "tile.await_mma"() {pending = 1 : i64}
// CHECK-NEXT:       "pipe.release"(%[[RING]])
// CHECK-NEXT:     }
// CHECK-NEXT:     "pipe.commit"(%[[TURNS]])
// CHECK-NEXT:     "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT:     "pipe.release"(%[[RING]])
// CHECK-NEXT:     "tile.staged_store"(%[[PING]], %{{.*}}, %[[PING_STAGING]], %[[I]], %[[J]])
// CHECK:          "pipe.skip"(%[[RING]]) {slots = 5 : i64}
// CHECK-NEXT:   }) {group = 8 : i64, order = "n", tiles = [4, 2], turn = 0 : i64, turns = 2 : i64}
// CHECK-NEXT: }) {agent = "ping", warps = 4 : i64}
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 232 : i64}
// CHECK-NEXT:   %[[PONG:.*]] = "tile.accumulator"() : () -> !tile.acc<tensor<64x128xf32>>
// CHECK-NEXT:   "pipe.for_each_turn"() ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:     "pipe.skip"(%[[RING]]) {slots = 5 : i64}
// CHECK-NEXT:     "pipe.wait"(%[[TURNS]])
// CHECK-NEXT:     "pipe.wait"(%[[RING]])
// CHECK:          scf.for
// CHECK:            "tile.mma"(%[[PONG]],
// CHECK-NEXT:       "tile.await_mma"() {pending = 1 : i64}
// CHECK-NEXT:       "pipe.release"(%[[RING]])
// CHECK-NEXT:     }
// CHECK-NEXT:     "pipe.release"(%[[TURNS]])
// CHECK-NEXT:     "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT:     "pipe.release"(%[[RING]])
// CHECK-NEXT:     "tile.staged_store"(%[[PONG]], %{{.*}}, %[[PONG_STAGING]], %[[I]], %[[J]])
// CHECK:        }) {group = 8 : i64, order = "n", tiles = [4, 2], turn = 1 : i64, turns = 2 : i64}
// CHECK-NEXT: }) {agent = "pong", warps = 4 : i64}
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 40 : i64}
// CHECK:        "tile.for_each_tile"
// CHECK:      }) {agent = "load", warps = 4 : i64}
// CHECK-NOT:  agent = "consumer"
// CHECK:      threads = 384 : i64
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x128xf32>>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [4, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()

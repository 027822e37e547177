// Without a pipeline a step ends with its MMAs done, so that the turn is handed over after the loop;
// copies by threads leave the consumers fewer registers. The kernel still lowers, with one copy of
// the consumers.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,warp-specialization,persistence{ctas=3},ping-pong' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,warp-specialization,persistence{ctas=3},ping-pong,lower-to-nvvm' | filecheck %s --check-prefix LOW

// CHECK:      agent = "ping"
// CHECK:      "pipe.set_registers"() {count = 184 : i64}
// CHECK:        "pipe.skip"(%[[RING:.*]]) {slots = 5 : i64}
// CHECK-NEXT:   "pipe.wait"(%[[TURNS:.*]]) :
// CHECK-NEXT:   scf.for
// CHECK:          "tile.mma"
// CHECK-NEXT:     "tile.await_mma"() {pending = 0 : i64}
// CHECK-NEXT:     "pipe.release"(%[[RING]])
// CHECK-NEXT:   }
// CHECK-NEXT:   "pipe.release"(%[[TURNS]])
// CHECK-NEXT:   "tile.store"
// CHECK:      agent = "pong"
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 136 : i64}

// LOW:     setmaxregister increase 184
// LOW-NOT: setmaxregister increase
// LOW:     setmaxregister decrease 136
// LOW-NOT: "pipe.


!a = memref<256x317xbf16, 1>
!b = memref<256x317xbf16, 1>
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

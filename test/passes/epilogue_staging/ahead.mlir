// A residual comes by TMA in pieces like those of c: the first two of a tile are on their way while
// its main loop runs. The store starts the loads of the others; threads read what TMA cannot.
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=16 ahead=2}' 2>&1 | filecheck %s
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=16}' | filecheck %s --check-prefix THREADS
// RUN: tilewright opt %s --passes 'epilogue-staging{columns=16 ahead=2},expand-loops' | filecheck %s --check-prefix LOOPS

// CHECK:       remark: epilogue-staging: t is read by threads: its row pitch must be a multiple of 16 bytes, got 520
// CHECK:       %[[R:.*]] = "tile.tensor_map"(%{{.*}}) : (memref<256x256xbf16, 1>) -> !tile.map<bf16, [256, 256], [512], [16, 128], "32B">
// CHECK:       %[[RING:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x16xbf16>, "k", "32B">]>
// CHECK:       "tile.load_ahead"(%[[R]], %[[RING]], %[[I:.*]], %[[J:.*]]) {pieces = 4 : i64}
// CHECK:       scf.for
// CHECK:       "tile.staged_store"(%{{.*}}, %{{.*}}, %{{.*}}, %[[I]], %[[J]])
// CHECK:       "tile.staged_element"(%{{.*}}, %[[RING]]) {axes = "mn"}
// CHECK:       "tile.element"(%{{.*}}) {axes = "mn"}

// THREADS-NOT: tile.load_ahead
// THREADS-NOT: tile.staged_element

// LOOPS-COUNT-2: "tile.load_piece"
// LOOPS:       "tile.mma"
// LOOPS:       scf.for
// LOOPS:       sm.named_barrier
// LOOPS-NEXT:  %[[PIECE:[0-9a-z_]+]] = "tile.await_piece"(%[[OWN:[0-9a-z_]+]])
// LOOPS:       %[[FOUR:[0-9a-z_]+]] = "tile.load_matrices"(%[[PIECE]], %[[ROW:[0-9a-z_]+]]) {column = 0 : i64}
// LOOPS-NEXT:  %[[PAIR:[0-9a-z_]+]] = llvm.shufflevector %[[FOUR]], %[[FOUR]] [0, 1] : vector<8xbf16>
// LOOPS-COUNT-3: llvm.shufflevector %[[FOUR]], %[[FOUR]]
// LOOPS:       "tile.held_element"(%{{.*}}, %[[PAIR]]) {axes = "mn"}
// LOOPS:       "tile.write_matrices"(%{{.*}}, %[[ROW]],
// LOOPS:       sm.named_barrier
// LOOPS:       "tile.tma_store"
// LOOPS:       scf.if
// LOOPS:       "tile.load_piece"(%{{.*}}, %[[OWN]]
// LOOPS-NOT:   tile.load_ahead
!a = memref<256x256xbf16, 1>
!t = memref<256x256xbf16, strided<[260, 1]>, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !a, %r: !a, %t: !t, %c: !a):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!a, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%r) {axes = "mn"} : (!a) -> bf16
    %wide = arith.extf %e : bf16 to f32
    %f = "tile.element"(%t) {axes = "mn"} : (!t) -> bf16
    %wide2 = arith.extf %f : bf16 to f32
    %s = arith.addf %x, %wide : f32
    %s2 = arith.addf %s, %wide2 : f32
    %y = arith.truncf %s2 : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !a, index, index) -> ()
}) {arg_names = ["a", "b", "r", "t", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// Two warpgroups share a tile whose products they add: as the program begins the last one gives the turn
// to the first, each multiplies in its own, gives it on before its last MMA is done, and adds behind
// that. Scales come with the tiles; those of columns are read before the turn, of rows while MMAs run.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         "sm.give_turn"(%{{.*}}) {id = 14 : i64, turns = 2 : i64}
// CHECK:         scf.for
// CHECK-NOT:     {id = 14 : i64
// CHECK-COUNT-4: "sm.tma_load"
// CHECK-COUNT-16: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT:     llvm.load
// CHECK:         "sm.await_turn"(%{{.*}}) {id = 14 : i64, turns = 2 : i64}
// CHECK:         "sm.wgmma_fence"
// CHECK-COUNT-3: "sm.wgmma"(
// CHECK:         "sm.wgmma_commit"
// CHECK:         "sm.wgmma"(
// CHECK:         "sm.wgmma_commit"
// CHECK:         "sm.converge"
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     llvm.load
// CHECK:         "sm.wgmma_wait"() {pending = 1 : i64}
// CHECK:         "sm.give_turn"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         "sm.pin"
// CHECK:         llvm.intr.fma
// CHECK-NOT:     {id = 14 : i64
// NVVM:          nvvm.barrier.arrive id = %{{.*}} number_of_threads = %{{.*}}
// NVVM:          nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
!a = memref<256x256xf8E4M3FN, 1>
!b = memref<256x256xf8E4M3FN, 1>
!c = memref<256x256xf32, 1>
!sa = memref<2x256xf32, 1>
!t = !tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">
!v = !tile.smem<tensor<1x128xf32>, "k", "linear">
!acc = !tile.acc<tensor<128x128xf32>>
module attributes {tile.mma_unit = "wgmma.mma_async+fma", tile.target = "sm_90a"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %sa: !sa, %sb: !sa, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 2 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !t
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !t
    %va = "tile.load"(%sa, %k, %i) : (!sa, index, index) -> !v
    %vb = "tile.load"(%sb, %k, %j) : (!sa, index, index) -> !v
    %more = arith.cmpi ne, %k, %zero : index
    "tile.blockwise_mma"(%acc, %ta, %tb, %more, %va, %vb, %i, %j, %k) {a_form = "1x128", b_form = "1x128"}
      : (!acc, !t, !t, i1, !v, !v, index, index, index) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "a_scales", "b_scales", "c"], cluster = [1, 1, 1], grid = [2, 2, 1], sym_name = "matmul", threads = 256 : i64} : () -> ()
}

// Roles are ranges of threads that elect a leader each; nothing but rings is between them.
// A filled accumulator is committed, and every epilogue warp hands it back.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,warp-specialization,lower-to-nvvm' | filecheck %s

// CHECK-NOT: "pipe.
// CHECK-NOT: "tile.
// CHECK:     nvvm.reqntid = array<i32: 192, 1, 1>
// CHECK:     nvvm.tcgen05.alloc
// CHECK:     nvvm.barrier
// CHECK-NOT: nvvm.barrier{{$}}
// CHECK:     nvvm.elect.sync
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK:     nvvm.tcgen05.ld
// CHECK:     nvvm.tcgen05.wait <load>
// CHECK:     nvvm.tcgen05.fence <before>
// CHECK:     nvvm.mbarrier.arrive
// CHECK:     nvvm.elect.sync
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:     nvvm.elect.sync
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK-COUNT-4: nvvm.tcgen05.mma
// CHECK:     nvvm.tcgen05.commit
// CHECK:     nvvm.tcgen05.commit
// CHECK:     nvvm.tcgen05.fence <before>
// CHECK:     nvvm.barrier
// CHECK:     nvvm.tcgen05.dealloc
// CHECK-NOT: nvvm.cluster
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

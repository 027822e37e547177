// With pairs every tcgen05 op and every copy is of cta_group::2, and commits reach both CTAs.
// An epilogue warp hands its accumulator back to the CTA that issues the MMAs, by a remote arrive.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,clustering{pair=true},warp-specialization,lower-to-nvvm' | filecheck %s

// Both CTAs are there before they allocate together, and the warp that loads does not wait for that.
// CHECK-NOT: cta_1
// CHECK:     nvvm.cluster.arrive.relaxed
// CHECK-NEXT: nvvm.cluster.wait
// CHECK:     nvvm.tcgen05.alloc {{.*}}{group = #nvvm.cta_group<cta_2>}
// CHECK:     nvvm.tcgen05.relinquish_alloc_permit {group = #nvvm.cta_group<cta_2>}
// CHECK:     nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.tcgen05.ld
// CHECK:     nvvm.tcgen05.wait <load>
// CHECK:     nvvm.tcgen05.fence <before>
// CHECK:     %[[REMOTE:.*]] = nvvm.mapa %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK:     nvvm.mbarrier.arrive %[[REMOTE]] : !llvm.ptr<7>
// CHECK:     llvm.cond_br
// CHECK:     nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared
// CHECK-COUNT-4: nvvm.tcgen05.mma {{.*}} {ctaGroup = #nvvm.cta_group<cta_2>
// CHECK-NOT: nvvm.tcgen05.mma
// CHECK-COUNT-2: nvvm.tcgen05.commit %{{.*}}, multicast_mask = %{{.*}} {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
// CHECK:     nvvm.cluster.wait
// CHECK:     nvvm.tcgen05.dealloc {{.*}} {group = #nvvm.cta_group<cta_2>}
// CHECK-NOT: cta_1
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

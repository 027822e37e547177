// Copies into several CTAs name a mask of them; a slot is empty when all who read it have said so.
// CTAs of a cluster meet before the first and after the last that they send each other.
// RUN: tilewright opt %s --passes 'tma-insertion{box=3d},swizzle-selection,clustering{shape=2x2 pair=false},lower-to-nvvm' | filecheck %s

// CHECK-NOT: cta_2
// CHECK:     %[[THREE:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK:     nvvm.mbarrier.init %{{.*}}, %{{.*}}
// CHECK:     nvvm.mbarrier.init %{{.*}}, %[[THREE]]
// CHECK:     nvvm.fence.mbarrier.init
// CHECK:     nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK:     nvvm.tcgen05.alloc
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} multicast_mask = %{{.*}} : !llvm.ptr<7>, !llvm.ptr
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared
// CHECK-COUNT-4: nvvm.tcgen05.mma
// CHECK:     nvvm.tcgen05.commit %{{.*}}, multicast_mask = %{{.*}} : !llvm.ptr<3>, i16
// CHECK:     nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK:     nvvm.tcgen05.dealloc
// CHECK-NOT: cta_2
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

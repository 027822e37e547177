// By the CTAs of its cluster a CTA counts arrivals, names those that hear of it, and loads the parts of a tile
// that nobody else of its cluster does. The kernel requires no cluster: a launch has two.
// RUN: tilewright opt %s --passes 'tma-insertion{box=3d},swizzle-selection,clustering{shape=2x2 pair=false fallback=1x1},lower-to-nvvm' | filecheck %s

// CHECK-NOT: nvvm.cluster_dim
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK-DAG: %[[THREE:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32) : i32
// CHECK:     nvvm.mbarrier.init
// CHECK:     %[[CTAS:.*]] = nvvm.read.ptx.sreg.cluster.nctarank
// CHECK:     %[[IS:.*]] = llvm.icmp "eq" %[[CTAS]], %[[FOUR]]
// CHECK:     %[[COUNT:.*]] = llvm.select %[[IS]], %[[THREE]], %[[ONE]]
// CHECK:     nvvm.mbarrier.init %{{.*}}, %[[COUNT]]
// CHECK:     %[[CTAS2:.*]] = nvvm.read.ptx.sreg.cluster.nctarank
// CHECK:     %[[PREFERRED:.*]] = llvm.icmp "eq" %[[CTAS2]], %[[FOUR]]
// CHECK:     llvm.select %[[PREFERRED]], %{{.*}}, %{{.*}} : i1, i16
// CHECK:     llvm.select %[[PREFERRED]], %[[ONE]], %[[TWO]] : i1, i32
// CHECK:     nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} multicast_mask
// CHECK:     nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} multicast_mask
// CHECK:     nvvm.tcgen05.commit %{{.*}}, multicast_mask = %{{.*}} : !llvm.ptr<3>, i16
// CHECK-NOT: nvvm.cluster_dim
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

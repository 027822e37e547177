// The scheduler asks for a cluster, announces 16 bytes and reads the answer; each role reads it too.
// A reader tells the async proxy before it hands the slot back, and takes its tile from the answer.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,warp-specialization,persistence{scheduler=clc},lower-to-nvvm' | filecheck %s

// CHECK-NOT: "pipe.
// CHECK:     nvvm.reqntid = array<i32: 224, 1, 1>
// CHECK:     nvvm.tcgen05.ld
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = is_canceled
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK:     nvvm.elect.sync
// CHECK:     nvvm.mbarrier.arrive %
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = get_first_cta_id_x
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = get_first_cta_id_y
// CHECK:     nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = is_canceled
// CHECK:     nvvm.tcgen05.mma
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = is_canceled
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.mbarrier.arrive.expect_tx
// CHECK:     nvvm.clusterlaunchcontrol.try.cancel
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.clusterlaunchcontrol.query.cancel query = is_canceled
// CHECK-NEXT: nvvm.fence.proxy
// CHECK-NOT: nvvm.clusterlaunchcontrol.query.cancel query = get_first
// CHECK:     nvvm.tcgen05.dealloc
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

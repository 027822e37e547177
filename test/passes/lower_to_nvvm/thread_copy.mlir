// Without TMA the threads copy, fence the async proxy and meet; then one thread issues the MMAs.
// RUN: tilewright opt %s --passes lower-to-nvvm | filecheck %s

// CHECK-NOT: nvvm.cp.async.bulk
// CHECK:     llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK:     llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
// CHECK:     nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.barrier
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK-COUNT-4: nvvm.tcgen05.mma
// CHECK:     nvvm.tcgen05.commit
// CHECK:     nvvm.mbarrier.try_wait
// CHECK:     nvvm.tcgen05.fence <after>
// CHECK-NOT: "tile.
"tile.kernel"() ({
^bb0(%a: memref<256x136xbf16, 1>, %b: memref<256x136xbf16, strided<[1, 256]>, 1>, %c: memref<256x256xbf16, 1>):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %c3 step %c1 {
    %ta = "tile.load"(%a, %i, %k) : (memref<256x136xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
    %tb = "tile.load"(%b, %j, %k) : (memref<256x136xbf16, strided<[1, 256]>, 1>, index, index) -> !tile.smem<tensor<64x64xbf16>, "mn", "none">
    %more = arith.cmpi ne, %k, %c0 : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!tile.acc<tensor<128x64xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<64x64xbf16>, "mn", "none">, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x64xf32>>, memref<256x256xbf16, 1>, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

// A piece is written once its buffer's last store has been read; all meet, then one thread stores it.
// The CTA does not end before TMA has read the last piece.
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,lower-to-nvvm' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging{write=rows buffers=1},lower-to-nvvm' | filecheck %s --check-prefix ROWS

// CHECK-NOT: st.global
// CHECK:     nvvm.tcgen05.commit
// CHECK:     nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK:     nvvm.barrier
// CHECK:     nvvm.tcgen05.ld %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_16x256b>}
// CHECK-NEXT: nvvm.tcgen05.wait <load>
// CHECK:     nvvm.stmatrix
// CHECK:     nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.barrier
// CHECK:     nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK:     nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:     nvvm.tcgen05.dealloc

// ROWS-NOT:  nvvm.stmatrix
// ROWS:      nvvm.cp.async.bulk.wait_group 0 {read}
// ROWS:      nvvm.tcgen05.ld %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}
// ROWS:      llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
// ROWS:      nvvm.fence.proxy
// ROWS:      nvvm.cp.async.bulk.tensor.global.shared.cta
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

// An MMA is a group of wgmma behind a fence, a K step each, in one asm; a slot is released by each
// warp when its group is done. The sums are in registers with names, where each pair is rounded
// behind the wait: LLVM sees none of them.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,lower-to-nvvm' | filecheck %s

// CHECK-NOT:     tcgen05
// CHECK-NOT:     "tile.
// CHECK-NOT:     llvm.alloca %{{.*}} x !llvm.struct
// CHECK:         llvm.inline_asm has_side_effects ".reg .b32 %sums0_<32>;"
// CHECK:         llvm.inline_asm has_side_effects ".reg .b32 %sums1_<32>;"
// CHECK:         nvvm.mbarrier.try_wait
// CHECK:         nvvm.wgmma.fence.aligned
// CHECK:         llvm.inline_asm
// CHECK-NOT:     llvm.inline_asm
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%sums{{[01]}}_0, %sums
// CHECK-NOT:     llvm.inline_asm
// CHECK:         nvvm.wgmma.commit.group.sync.aligned
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:         nvvm.mbarrier.arrive
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NOT:     mov.b32
// CHECK:         llvm.inline_asm has_side_effects "cvt.rn.bf16x2.f32 $0, %sums0_1, %sums0_0;", "=r"
// CHECK:         llvm.inline_asm has_side_effects "cvt.rn.bf16x2.f32 $0, %sums1_31, %sums1_30;", "=r"
// CHECK:         llvm.store
// CHECK-NOT:     nvvm.barrier
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, 1>
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

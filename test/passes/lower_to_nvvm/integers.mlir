// Products of bytes: a step of K is 32 of them, the sums are i32 in registers or tensor memory, and
// they are stored as they are.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix HOPPER
// RUN: tilewright opt %s --target sm_100a --passes 'tma-insertion,swizzle-selection,lower-to-nvvm' | filecheck %s

// HOPPER:         llvm.inline_asm has_side_effects ".reg .b32 %sums0_<32>;"
// HOPPER-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.u8 {%sums
// HOPPER-SAME:    }, $9, $10, $11;", "l,l,b
// HOPPER:         mov.b32 $0, %sums0_0;{{.*}} "=r,=r,
// HOPPER-NOT:     f32
// HOPPER:         llvm.store {{.*}} : vector<2xi32>
// CHECK-COUNT-2:  nvvm.tcgen05.mma {{.*}}tcgen05_mma_kind<i8>
// CHECK-NOT:      f32
!a = memref<256x320xi8, 1>
!b = memref<256x320xui8, 1>
!c = memref<256x256xi32, 1>
!ta = !tile.smem<tensor<128x64xi8>, "k", "none">
!tb = !tile.smem<tensor<64x64xui8>, "k", "none">
!acc = !tile.acc<tensor<128x64xi32>>
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
  ^bb0(%x: i32):
    "tile.yield"(%x) : (i32) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

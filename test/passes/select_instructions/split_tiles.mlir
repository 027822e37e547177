// f32 tiles by their bf16 terms: threads write four terms of each tile, 16 bytes at a time, before
// they meet; one lane multiplies them, the least products first, and the tensor core divides what
// it adds to where the next power of 2^-8 begins. The sums start at zero, and threads add them.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --passes 'swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         llvm.load {{.*}} !llvm.ptr<3> -> vector<4xi32>
// CHECK:         arith.select %{{.*}}, %[[X:.*]], %{{.*}} : f32
// CHECK:         arith.subf
// CHECK:         arith.mulf
// CHECK:         "sm.cut_bf16"
// CHECK-COUNT-4: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-4: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         "sm.fence"() {kind = "async_shared"}
// CHECK:         "sm.named_barrier"
// CHECK-NOT:     llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         "sm.mma"({{.*}} {a_major = "k", a_offset = 12288 : i64, {{.*}} b_offset = 6144 : i64
// CHECK-NEXT:    arith.constant true
// CHECK-NEXT:    "sm.scaling_mma"({{.*}} a_offset = 12288 : i64, {{.*}} b_offset = 4096 : i64, {{.*}} shift = 8 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 8192 : i64, {{.*}} b_offset = 6144 : i64
// CHECK:         "sm.scaling_mma"({{.*}} a_offset = 12288 : i64, {{.*}} b_offset = 2048 : i64
// CHECK-COUNT-2: "sm.mma"
// CHECK:         "sm.scaling_mma"({{.*}} a_offset = 8192 : i64, {{.*}} b_offset = 2048 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 4096 : i64, {{.*}} b_offset = 4096 : i64
// CHECK:         "sm.scaling_mma"({{.*}} a_offset = 0 : i64, {{.*}} b_offset = 0 : i64
// CHECK-NOT:     "sm.mma"
// CHECK:         "sm.commit"
// CHECK:         "sm.tmem_load"
// CHECK:         arith.addf
// NVVM:          llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rz"
// NVVM:          nvvm.tcgen05.mma {{.*}} scale = %{{.*}} {ctaGroup = #nvvm.cta_group<cta_1>
!a = memref<64x32xf32, 1>
!b = memref<16x32xf32, 1>
!c = memref<64x16xf32, 1>
!ta = !tile.smem<tensor<64x16xf32>, "k", "none">
!tb = !tile.smem<tensor<16x16xf32>, "k", "none">
!acc = !tile.acc<tensor<64x16xf32>>
module attributes {tile.mma_unit = "tcgen05.mma+bf16x9", tile.target = "sm_100a"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 2 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "matmul", threads = 128 : i64} : () -> ()
}

// f32 tiles by two terms of tf32: threads write high and low of each tile, 16 bytes at a time, before
// they meet; one lane multiplies low by high, high by low and high by high. The sums start at zero.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --passes 'swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         llvm.load {{.*}} !llvm.ptr<3> -> vector<4xi32>
// CHECK:         %[[HIGH:.*]] = "sm.round_tf32"(%[[X:.*]]) :
// CHECK:         %[[OF:.*]] = llvm.bitcast %[[HIGH]]
// CHECK:         %[[LEFT:.*]] = arith.subf %[[X]], %[[OF]]
// CHECK:         "sm.round_tf32"(%[[LEFT]])
// CHECK-COUNT-2: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         "sm.fence"() {kind = "async_shared"}
// CHECK:         "sm.named_barrier"
// CHECK-NOT:     llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         %[[ZERO:.*]] = arith.constant false
// CHECK:         "sm.mma"({{.*}}, %[[ZERO]]) {a_major = "k", a_offset = 8192 : i64, a_type = "tf32", {{.*}} b_offset = 0 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 8224 : i64, {{.*}} b_offset = 32 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 0 : i64, {{.*}} b_offset = 2048 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 32 : i64, {{.*}} b_offset = 2080 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 0 : i64, {{.*}} b_offset = 0 : i64
// CHECK:         "sm.mma"({{.*}} a_offset = 32 : i64, {{.*}} b_offset = 32 : i64
// CHECK-NOT:     "sm.mma"
// CHECK-NOT:     "sm.scaling_mma"
// CHECK:         "sm.commit"
// CHECK:         "sm.tmem_load"
// CHECK:         arith.addf
// NVVM:          nvvm.tcgen05.mma
!a = memref<64x32xf32, 1>
!b = memref<16x32xf32, 1>
!c = memref<64x16xf32, 1>
!ta = !tile.smem<tensor<64x16xf32>, "k", "none">
!tb = !tile.smem<tensor<16x16xf32>, "k", "none">
!acc = !tile.acc<tensor<64x16xf32>>
module attributes {tile.mma_unit = "tcgen05.mma+3xtf32", tile.target = "sm_100a"} {
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

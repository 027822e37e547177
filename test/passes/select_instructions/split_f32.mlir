// f32 by three products of tf32: each element of a fragment is rounded, what is left is rounded again,
// and three MMAs begin at zero, whose sums threads add.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --passes 'swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         "sm.ldmatrix"
// CHECK:         %[[HIGH:.*]] = "sm.round_tf32"(%[[X:.*]]) : (f32) -> i32
// CHECK:         %[[WIDE:.*]] = llvm.bitcast %[[HIGH]] : i32 to f32
// CHECK:         %[[LEFT:.*]] = arith.subf %[[X]], %[[WIDE]] : f32
// CHECK:         "sm.round_tf32"(%[[LEFT]]) : (f32) -> i32
// CHECK:         llvm.mlir.zero
// CHECK-COUNT-3: "sm.mma_sync"({{.*}}) {a_type = "tf32", b_type = "tf32", d_type = "f32", k = 8 : i64}
// CHECK:         arith.addf
// NVVM:          llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"
// NVVM:          mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
!a = memref<64x96xf32, 1>
!b = memref<32x96xf32, 1>
!c = memref<64x32xf32, 1>
!ta = !tile.smem<tensor<64x32xf32>, "k", "none">
!tb = !tile.smem<tensor<32x32xf32>, "k", "none">
!acc = !tile.acc<tensor<64x32xf32>>
module attributes {tile.mma_unit = "mma.sync+3xtf32", tile.target = "sm_80"} {
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 3 : index
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

// f32 by nine products of bf16: what is no number has no parts but the first, what is left of an
// element is multiplied by 2^8, and sums of small products by 2^-8 before larger ones are added.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --passes 'swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         "sm.ldmatrix"
// CHECK:         arith.select %{{.*}}, %[[X:.*]], %{{.*}} : f32
// CHECK:         arith.subf
// CHECK:         arith.mulf
// CHECK:         "sm.cut_bf16"
// CHECK:         llvm.mlir.zero
// CHECK:         "sm.mma_sync"({{.*}}) {a_type = "bf16", b_type = "bf16", d_type = "f32", k = 16 : i64}
// CHECK:         arith.mulf
// CHECK-COUNT-2: "sm.mma_sync"
// CHECK:         arith.mulf
// CHECK-COUNT-3: "sm.mma_sync"
// CHECK:         arith.mulf
// CHECK-COUNT-2: "sm.mma_sync"
// CHECK:         arith.mulf
// CHECK:         "sm.mma_sync"
// CHECK:         arith.addf
// NVVM:          llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rz"
// NVVM:          mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
!a = memref<16x32xf32, 1>
!b = memref<8x32xf32, 1>
!c = memref<16x8xf32, 1>
!ta = !tile.smem<tensor<16x16xf32>, "k", "none">
!tb = !tile.smem<tensor<8x16xf32>, "k", "none">
!acc = !tile.acc<tensor<16x8xf32>>
module attributes {tile.mma_unit = "mma.sync+bf16x9", tile.target = "sm_80"} {
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "matmul", threads = 32 : i64} : () -> ()
}

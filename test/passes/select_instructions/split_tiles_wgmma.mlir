// The same by wgmma, which divides nothing: plain terms, those of A in registers, and all products in
// one group. Where an element is not the sum of its terms, threads multiply.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s

// CHECK:         "sm.cut_bf16"
// CHECK:         "sm.fence"() {kind = "async_shared"}
// CHECK:         %[[FAILS:.*]] = "sm.any_barrier"
// CHECK:         scf.if %[[FAILS]]
// CHECK:           llvm.intr.fma
// CHECK:           "sm.named_barrier"
// CHECK-COUNT-3: "sm.keep"
// CHECK:         "sm.wgmma_fence"
// CHECK:         "sm.wgmma_of_registers"({{.*}} b_offset = 6144 : i64
// CHECK:         "sm.wgmma_of_registers"({{.*}} b_offset = 3072 : i64
// CHECK:         "sm.wgmma_of_registers"({{.*}} b_offset = 6144 : i64
// CHECK-COUNT-5: "sm.wgmma_of_registers"({{.*}} m = 64
// CHECK:         "sm.wgmma_of_registers"({{.*}} b_offset = 0 : i64
// CHECK-NOT:     "sm.wgmma_of_registers"
// CHECK:         "sm.wgmma_commit"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         arith.addf
!a = memref<64x32xf32, 1>
!b = memref<16x32xf32, 1>
!c = memref<64x16xf32, 1>
!ta = !tile.smem<tensor<64x16xf32>, "k", "none">
!tb = !tile.smem<tensor<16x16xf32>, "k", "none">
!acc = !tile.acc<tensor<64x16xf32>>
module attributes {tile.mma_unit = "wgmma.mma_async+bf16x9", tile.target = "sm_90a"} {
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

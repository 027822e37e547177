// The same by wgmma, which divides nothing: threads wait for each power of 2^-8, and multiply its
// sums before the next one is added to them.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s

// CHECK:         "sm.cut_bf16"
// CHECK:         "sm.fence"() {kind = "async_shared"}
// CHECK:         "sm.named_barrier"
// CHECK:         "sm.wgmma_fence"
// CHECK:         "sm.wgmma"({{.*}} a_offset = 12288 : i64, {{.*}} b_offset = 6144 : i64
// CHECK:         "sm.wgmma_commit"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         arith.mulf
// CHECK:         "sm.wgmma_fence"
// CHECK-COUNT-2: "sm.wgmma"
// CHECK:         "sm.wgmma_commit"
// CHECK:         arith.mulf
// CHECK-COUNT-3: "sm.wgmma"({{.*}} m = 64
// CHECK:         arith.mulf
// CHECK-COUNT-2: "sm.wgmma"({{.*}} m = 64
// CHECK:         arith.mulf
// CHECK:         "sm.wgmma"({{.*}} a_offset = 0 : i64, {{.*}} b_offset = 0 : i64
// CHECK-NOT:     "sm.wgmma"(
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

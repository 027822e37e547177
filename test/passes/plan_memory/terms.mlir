// Terms of f32 tiles have two slots behind the operands; of each tile four, K-major in bf16.
// RUN: tilewright opt %s --passes 'swizzle-selection,assign-threads,plan-memory' | filecheck %s

// CHECK: %[[MEMORY:.*]] = "sm.slot_memory"() {offsets = [5120, 9216, 13312, 17408, 21504, 23552, 25600, 27648], slots = 2 : i64}
// CHECK-SAME: !tile.smem<tensor<64x16xbf16>, "k", "32B">, !tile.smem<tensor<16x16xbf16>, "k", "32B">
// CHECK: "sm.terms"(%[[MEMORY]])

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

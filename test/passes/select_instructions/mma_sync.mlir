// A warp of 2x2 has 32x16 of the tile: its rows of A and columns of B by four matrices a load, for
// each 16 of K, and two MMAs a row of MMAs: eight in a step, and the four behind it that the last held
// back.
// RUN: tilewright opt %s --passes 'swizzle-selection,select-instructions' | filecheck %s
// RUN: tilewright opt %s --passes 'swizzle-selection,lower-to-nvvm' | filecheck %s --check-prefix NVVM

// CHECK:         "sm.ldmatrix"(%{{.*}}) {offset = 0 : i64, transposed = 0 : i64} : {{.*}} -> vector<4xi32>
// CHECK-NEXT:    %{{.*}} = {{.*}}
// CHECK:         "sm.ldmatrix"(%{{.*}}) {offset = 1024 : i64, transposed = 0 : i64}
// CHECK-COUNT-12: "sm.mma_sync"({{.*}}) {a_type = "bf16", b_type = "bf16", d_type = "f32", k = 16 : i64}
// CHECK-NOT:     "sm.mma_sync"
// NVVM-COUNT-6:  nvvm.ldmatrix
// NVVM:          mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
!a = memref<64x96xbf16, 1>
!b = memref<32x96xbf16, 1>
!c = memref<64x32xf32, 1>
!ta = !tile.smem<tensor<64x32xbf16>, "k", "none">
!tb = !tile.smem<tensor<32x32xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x32xf32>>
module attributes {tile.target = "sm_80"} {
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
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f", threads = 128 : i64, tile.warp_grid = [2, 2]} : () -> ()
}

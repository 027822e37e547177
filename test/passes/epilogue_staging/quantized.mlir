// Elements with block scales are pieces of bytes, stored by TMA through a map of bytes; threads store scales, four blocks at a time.
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging' | filecheck %s
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,expand-loops' | filecheck %s --check-prefix LOOPS

// CHECK: "tile.tensor_map"(%{{.*}}) : (memref<300x256xf4E2M1FN, 1>) -> !tile.map<i8, [128, 300], [128], [64, 128], "64B">
// CHECK: pipe.create
// CHECK: tile.smem<tensor<128x64xi8>, "k", "64B">
// CHECK: "tile.staged_quantized"(
// CHECK-NOT: tile.store_quantized

// 128 columns are a piece of 64 bytes: four blocks of 32, each 16 bytes and one scale.
// LOOPS:          scf.for %{{.*}} = %c0_i32 to %c64_i32{{.*}} step %c64_i32
// LOOPS:          "tile.read_row"
// LOOPS-COUNT-8:  "tile.apply_to_row"
// LOOPS:          "tile.block_scale"(%{{.*}}) {block = 32 : i64, element = f4E2M1FN, rounding = "floor", scale = f8E8M0FNU}
// LOOPS:          "sm.narrow"
// LOOPS:          "tile.write_unit"
// LOOPS-COUNT-3:  "tile.write_unit"
// LOOPS:          vector.from_elements {{.*}} : vector<4xi8>
// LOOPS:          "tile.write_scales"
// LOOPS:          "tile.tma_store"({{.*}}) {extents = [128, 64]}
// LOOPS-NOT:      tile.write_codes
!a = memref<300x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<300x256xf4E2M1FN, 1>
!s = memref<3x2x32x4x4xf8E8M0FNU, 1>
!t = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x128xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c, %s: !s):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !t
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !t
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !t, !t, i1) -> ()
  }
  "tile.store_quantized"(%acc, %c, %s, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {block = 32 : i64, rounding = "floor"} : (!acc, !c, !s, index, index) -> ()
}) {arg_names = ["a", "b", "c", "c_scales"], cluster = [1, 1, 1], grid = [3, 2, 1], sym_name = "f", threads = 128 : i64} : () -> ()

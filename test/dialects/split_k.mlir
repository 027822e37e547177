// What a split K needs is read, checked and printed as it is.
// RUN: tilewright opt %s | filecheck %s

// CHECK:      %[[PARTIALS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xf32>, "k", "128B">]>
// CHECK:      %[[RANK:.*]] = "tile.split_rank"() : () -> index
// CHECK:      "tile.reduced_store"(%{{.*}}, %[[PARTIALS]], %{{.*}}, %{{.*}}, %[[RANK]]) ({
// CHECK:      }) : (!tile.acc<tensor<128x64xf32>>, !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xf32>, "k", "128B">]>, memref<128x64xf32, 1>, index, index) -> ()
// CHECK:      cluster = [1, 1, 4], grid = [1, 1, 4]
!view = memref<128x64xf32, 1>
!acc = !tile.acc<tensor<128x64xf32>>
!ring = !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xf32>, "k", "128B">]>
"tile.kernel"() ({
^bb0(%c: !view):
  %partials = "pipe.create"() : () -> !ring
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %rank = "tile.split_rank"() : () -> index
  %acc = "tile.accumulator"() : () -> !acc
  "tile.reduced_store"(%acc, %partials, %c, %i, %rank) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!acc, !ring, !view, index, index) -> ()
}) {arg_names = ["c"], cluster = [1, 1, 4], grid = [1, 1, 4], sym_name = "f", threads = 128 : i64} : () -> ()

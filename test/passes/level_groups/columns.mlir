// A and B are exchanged, so rows of groups are columns of the MMAs: a tile asks for boxes of 32 of its rows, and an MMA has as
// many columns as the tile has rows, up to the next multiple of 16.
// RUN: tilewright opt %s --passes 'level-groups{unit=16}' | filecheck %s

// Rows come by boxes of 32, weights as before.
// CHECK:     %[[WEIGHTS:.*]] = "tile.tensor_map"(%arg1){{.*}} [64, 128, 1], "128B">
// CHECK:     %[[ROWS:.*]] = "tile.tensor_map"(%arg0){{.*}} -> !tile.map<bf16, [256, 256], [512], [64, 32], "128B">

// A tile's count of rows is that of its group, and the MMAs take it.
// CHECK:     %[[GROUP:.*]]:4 = "tile.group"
// CHECK:     "tile.level_mma"({{.*}}, %[[GROUP]]#3) {unit = 16 : i64}
// CHECK-NOT: "tile.mma"

// The loader asks for no more rows than that.
// CHECK:     %[[OWN:.*]]:4 = "tile.group"
// CHECK:     %[[OF_GROUP:.*]] = "tile.group_rows"(%[[ROWS]], %[[OWN]]#2, %[[OWN]]#3)
// CHECK:     %[[OF_WEIGHTS:.*]] = "tile.matrix"(%[[WEIGHTS]], %[[OWN]]#0)
// CHECK:     "tile.tma_load"(%[[OF_WEIGHTS]],
// CHECK:     "tile.level_load"(%[[OF_GROUP]], %{{.*}}, %[[OWN]]#1, %{{.*}}, %[[OWN]]#3)
// CHECK:     tile.level, tile.swapped
!map = !tile.map<bf16, [256, 1073741824, 2147418112, 2147418112], [512, 512, 17179868672], [64, 16, 1, 1], "128B">
!tile = !tile.smem<tensor<128x16xbf16>, "mn", "128B">
!ring = !pipe.ring<2 : i64, [!tile]>
!map2 = !tile.map<bf16, [256, 256, 4], [512, 131072], [64, 128, 1], "128B">
!map3 = !tile.map<bf16, [256, 256], [512], [64, 128], "128B">
!tile2 = !tile.smem<tensor<128x64xbf16>, "k", "128B">
!ring2 = !pipe.ring<2 : i64, [!tile2, !tile2]>
!acc = !tile.acc<tensor<128x128xf32>>
!slot = !pipe.slot<[!tile2, !tile2]>
module attributes {tile.target = "sm_90a"} {
  "tile.kernel"() ({
  ^bb0(%a: memref<256x256xbf16, 1>, %b: memref<4x256x256xbf16, 1>, %offsets: memref<4xi32, 1>, %c: memref<256x256xbf16, 1>):
    %c_map = "tile.tensor_map"(%c) : (memref<256x256xbf16, 1>) -> !map
    %staging_ring = "pipe.create"() : () -> !ring
    %b_map = "tile.tensor_map"(%b) : (memref<4x256x256xbf16, 1>) -> !map2
    %a_map = "tile.tensor_map"(%a) : (memref<256x256xbf16, 1>) -> !map3
    %ring = "pipe.create"() : () -> !ring2
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_0 = arith.constant 0 : index
    %c1_1 = arith.constant 1 : index
    %c0_2 = arith.constant 0 : index
    %adds = arith.cmpi ne, %c0_2, %c0 : index
    %c1_3 = arith.constant 1 : index
    "pipe.role"() ({
      %acc = "tile.accumulator"() : () -> !acc
      "tile.for_each_tile"() ({
      ^bb0(%i: index, %j: index):
        %group:4 = "tile.group"(%j, %offsets) {extent = 256 : i64, tile = 128 : i64, together = 1 : i64} : (index, memref<4xi32, 1>) -> (index, index, index, index)
        %group_rows = "tile.group_rows"(%c_map, %group#2, %group#3) : (!map, index, index) -> !map
        %slot = "pipe.wait"(%ring) : (!ring2) -> !slot
        %a_tile = "pipe.tile"(%slot) {index = 0 : i64} : (!slot) -> !tile2
        %b_tile = "pipe.tile"(%slot) {index = 1 : i64} : (!slot) -> !tile2
        "tile.mma"(%acc, %a_tile, %b_tile, %adds) : (!acc, !tile2, !tile2, i1) -> ()
        %c4 = arith.constant 4 : index
        scf.for %k = %c1_3 to %c4 step %c1 {
          %adds_4 = arith.cmpi ne, %k, %c0 : index
          %slot_5 = "pipe.wait"(%ring) : (!ring2) -> !slot
          %a_tile_6 = "pipe.tile"(%slot_5) {index = 0 : i64} : (!slot) -> !tile2
          %b_tile_7 = "pipe.tile"(%slot_5) {index = 1 : i64} : (!slot) -> !tile2
          "tile.mma"(%acc, %a_tile_6, %b_tile_7, %adds_4) : (!acc, !tile2, !tile2, i1) -> ()
          "tile.await_mma"() {pending = 1 : i64} : () -> ()
          "pipe.release"(%ring) : (!ring2) -> ()
        }
        "tile.await_mma"() {pending = 0 : i64} : () -> ()
        "pipe.release"(%ring) : (!ring2) -> ()
        "tile.staged_store"(%acc, %group_rows, %staging_ring, %i, %group#1) ({
        ^bb0(%x: f32):
          %0 = arith.truncf %x : f32 to bf16
          "tile.yield"(%0) : (bf16) -> ()
        }) {write = "matrices"} : (!acc, !map, !ring, index, index) -> ()
      }) {group = 8 : i64, order = "grouped", tiles = [2, 5]} : () -> ()
    }) {agent = "consumer", warps = 4 : i64} : () -> ()
    "pipe.role"() ({
      %c4 = arith.constant 4 : index
      "tile.for_each_tile"() ({
      ^bb0(%i: index, %j: index):
        %group:4 = "tile.group"(%j, %offsets) {extent = 256 : i64, tile = 128 : i64, together = 1 : i64} : (index, memref<4xi32, 1>) -> (index, index, index, index)
        %group_rows = "tile.group_rows"(%a_map, %group#2, %group#3) : (!map3, index, index) -> !map3
        %matrix = "tile.matrix"(%b_map, %group#0) : (!map2, index) -> !map3
        scf.for %k = %c0_0 to %c4 step %c1_1 {
          %slot = "pipe.acquire"(%ring) : (!ring2) -> !slot
          %a_tile = "pipe.tile"(%slot) {index = 0 : i64} : (!slot) -> !tile2
          %b_tile = "pipe.tile"(%slot) {index = 1 : i64} : (!slot) -> !tile2
          "tile.tma_load"(%matrix, %a_tile, %i, %k) : (!map3, !tile2, index, index) -> ()
          "tile.tma_load"(%group_rows, %b_tile, %group#1, %k) : (!map3, !tile2, index, index) -> ()
          "pipe.commit"(%ring) : (!ring2) -> ()
        }
      }) {group = 8 : i64, order = "grouped", tiles = [2, 5]} : () -> ()
    }) {agent = "load", warps = 1 : i64} : () -> ()
  }) {arg_names = ["a", "b", "offsets", "c"], cluster = [1, 1, 1], grid = [4, 1, 1], sym_name = "grouped_matmul_bf16_4x256x256x256", threads = 160 : i64, tile.swapped} : () -> ()
}

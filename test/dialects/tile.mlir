// Every op and type of `tile` prints what it parses.
// RUN: tilewright opt %s | tilewright opt - | filecheck %s

// CHECK:      %[[MM:.*]] = "tile.matmul"(%[[TA:.*]], %[[TB:.*]]) ({
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT:   %[[E:.*]] = "tile.element"(%{{.*}}) {axes = "n"} : (tensor<64xf32>) -> f32
// CHECK:        "tile.yield"(%{{.*}}) : (f32) -> ()
// CHECK-NEXT: }) {a_major = "k", b_major = "mn"} : (tensor<128x64xbf16>, tensor<64x64xbf16>) -> tensor<128x64xf32>
// CHECK:      "tile.weight_matmul"(%{{.*}}, %{{.*}}, %{{.*}}) ({
// CHECK:      }) {a_major = "k", b_major = "k", group = 64 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<128x64xbf16>, tensor<64x64xi4>, tensor<64x1xf32>) -> tensor<128x64xf32>
// CHECK:      "tile.kernel"() ({
// CHECK:        "tile.cta_tile"() : () -> (index, index)
// CHECK:        "tile.pair_rank"() : () -> index
// CHECK-NEXT:   "tile.await_mma"() {pending = 1 : i64} : () -> ()
// CHECK:        "tile.accumulator"() : () -> !tile.acc<tensor<128x64xf32>>
// CHECK:        "tile.load"(%{{.*}}, %{{.*}}#0, %{{.*}}#1) : (memref<128x64xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
// CHECK:        "tile.tensor_map"(%{{.*}}) : (memref<128x64xbf16, 1>) -> !tile.map<bf16, [64, 128], [128], [8, 128], "none">
// CHECK:        "tile.tensor_map"(%{{.*}}) : (memref<128x64xbf16, 1>) -> !tile.map<bf16, [64, 128], [128], [8, 64], "none">
// CHECK:        "tile.tma_load"(%{{.*}}) : (!tile.map<bf16, [64, 128], [128], [8, 128], "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, index, index)
// CHECK:        "tile.tma_multicast"(%{{.*}}) {axis = "n", parts = 2 : i64} : (!tile.map<bf16, [64, 128], [128], [8, 64], "none">
// CHECK:        "tile.copy"(%{{.*}}) : (memref<128x64xbf16, 1>, !tile.smem<tensor<128x64xbf16>, "k", "none">, index, index)
// CHECK:        "tile.for_each_tile"() ({
// CHECK-NEXT:   ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:     "tile.mma"(%{{.*}}) : (!tile.acc<tensor<128x128xf32>>
// CHECK-NEXT:     "tile.pair_mma"(%{{.*}}) : (!tile.acc<tensor<128x256xf32>>
// CHECK-NEXT:     "tile.store"(%{{.*}}, %{{.*}}, %[[I]], %[[J]]) ({
// CHECK:          }) : (!tile.acc<tensor<128x64xf32>>, memref<128x64xf32, 1>, index, index) -> ()
// CHECK-NEXT:     "tile.staged_store"(%{{.*}}, %{{.*}}, %{{.*}}, %[[I]], %[[J]]) ({
// CHECK:          }) {write = "rows"}
// CHECK:        }) {group = 2 : i64, order = "grouped", tiles = [4, 1]} : () -> ()
// CHECK:      cluster = [2, 1, 1], grid = [4, 1, 1]
!view = memref<128x64xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tc = !tile.smem<tensor<128x4xf32>, "k", "none">
!ring = !pipe.ring<1 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">]>
!slot = !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">]>
!staging = !pipe.ring<2 : i64, [!tile.smem<tensor<128x4xf32>, "k", "none">]>
!acc = !tile.acc<tensor<128x64xf32>>
!square = !tile.acc<tensor<128x128xf32>>
!wide = !tile.acc<tensor<128x256xf32>>
!whole = !tile.map<bf16, [64, 128], [128], [8, 128], "none">
!part = !tile.map<bf16, [64, 128], [128], [8, 64], "none">
!out = !tile.map<f32, [64, 128], [256], [4, 128], "none">
func.func @g(%a: tensor<128x64xbf16>, %b: tensor<64x64xbf16>, %bias: tensor<64xf32>) -> tensor<128x64xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {axes = "n"} : (tensor<64xf32>) -> f32
    %y = arith.addf %x, %e : f32
    "tile.yield"(%y) : (f32) -> ()
  }) {a_major = "k", b_major = "mn"} : (tensor<128x64xbf16>, tensor<64x64xbf16>) -> tensor<128x64xf32>
  return %c : tensor<128x64xf32>
}
func.func @h(%a: tensor<128x64xbf16>, %b: tensor<64x64xi4>, %s: tensor<64x1xf32>) -> tensor<128x64xf32> {
  %c = "tile.weight_matmul"(%a, %b, %s) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 64 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<128x64xbf16>, tensor<64x64xi4>, tensor<64x1xf32>) -> tensor<128x64xf32>
  return %c : tensor<128x64xf32>
}
"tile.kernel"() ({
^bb0(%a: !view, %c: memref<128x64xf32, 1>):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %rank = "tile.pair_rank"() : () -> index
  "tile.await_mma"() {pending = 1 : i64} : () -> ()
  %acc = "tile.accumulator"() : () -> !acc
  %square = "tile.accumulator"() : () -> !square
  %wide = "tile.accumulator"() : () -> !wide
  %true = arith.constant true
  %t = "tile.load"(%a, %i, %j) : (!view, index, index) -> !ta
  %whole = "tile.tensor_map"(%a) : (!view) -> !whole
  %part = "tile.tensor_map"(%a) : (!view) -> !part
  %out = "tile.tensor_map"(%c) : (memref<128x64xf32, 1>) -> !out
  %ring = "pipe.create"() : () -> !ring
  %staging = "pipe.create"() : () -> !staging
  %slot = "pipe.acquire"(%ring) : (!ring) -> !slot
  %to = "pipe.tile"(%slot) {index = 0 : i64} : (!slot) -> !ta
  %too = "pipe.tile"(%slot) {index = 1 : i64} : (!slot) -> !ta
  %copy = "pipe.tile"(%slot) {index = 2 : i64} : (!slot) -> !ta
  "tile.tma_load"(%whole, %to, %i, %j) : (!whole, !ta, index, index) -> ()
  "tile.tma_multicast"(%part, %too, %i, %j) {axis = "n", parts = 2 : i64} : (!part, !ta, index, index) -> ()
  "tile.copy"(%a, %copy, %i, %j) : (!view, !ta, index, index) -> ()
  "pipe.commit"(%ring) : (!ring) -> ()
  %full = "pipe.wait"(%ring) : (!ring) -> !slot
  "pipe.release"(%ring) : (!ring) -> ()
  "tile.for_each_tile"() ({
  ^bb0(%m: index, %n: index):
    "tile.mma"(%square, %t, %t, %true) : (!square, !ta, !ta, i1) -> ()
    "tile.pair_mma"(%wide, %t, %t, %true) : (!wide, !ta, !ta, i1) -> ()
    "tile.store"(%acc, %c, %m, %n) ({
    ^bb0(%x: f32):
      "tile.yield"(%x) : (f32) -> ()
    }) : (!acc, memref<128x64xf32, 1>, index, index) -> ()
    "tile.staged_store"(%acc, %out, %staging, %m, %n) ({
    ^bb0(%x: f32):
      "tile.yield"(%x) : (f32) -> ()
    }) {write = "rows"} : (!acc, !out, !staging, index, index) -> ()
  }) {group = 2 : i64, order = "grouped", tiles = [4, 1]} : () -> ()
}) {arg_names = ["a", "c"], cluster = [2, 1, 1], grid = [4, 1, 1], sym_name = "f", threads = 128 : i64} : () -> ()

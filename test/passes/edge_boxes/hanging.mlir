// A has 120 rows and tiles of 64, so that its second tile hangs over by 8; 256 rows of B are tiles of 64. Only loads of
// A are changed: whole boxes fill both slots first, then a box of 56 rows brings those that there are, by a map of its own.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,pipelining{stages=2},warp-specialization,edge-boxes' | filecheck %s
// RUN: tilewright opt %s --target sm_100a --passes 'tma-insertion,pipelining{stages=2},warp-specialization,edge-boxes' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,clustering{shape=1x2 pair=false},pipelining{stages=2},warp-specialization,edge-boxes' | filecheck %s --check-prefix=SHARED
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,edge-boxes,assign-threads,plan-memory,expand-loops,pipes-to-barriers' | filecheck %s --check-prefix=BYTES

// CHECK:      %[[MAP:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [320, 120], [640], [8, 64], "none">
// CHECK-NEXT: %[[END:.*]] = "tile.tensor_map"(%{{.*}}) : {{.*}} -> !tile.map<bf16, [320, 120], [640], [8, 56], "none">
// CHECK:      %[[IJ:.*]]:2 = "tile.cta_tile"()
// CHECK:          %[[COUNT:.*]] = "tile.edge_rows"(%[[IJ]]#0, %[[K:[a-z0-9]+]]) {extent = 120 : i64, first = 2 : i64, rows = 64 : i64, unit = 1 : i64}
// CHECK:          "tile.edge_load"(%[[MAP]], %{{.*}}, %[[IJ]]#0, %[[K]], %[[COUNT]], %[[END]])
// CHECK-NEXT:     "tile.tma_load"(
// CHECK:      agent = "load"

// Two CTAs along N share a tile of A: each brings its half of the rows in boxes of 8, or one box.
// SHARED: "tile.edge_rows"({{.*}}) {extent = 120 : i64, first = 2 : i64, rows = 64 : i64, unit = 8 : i64}
// SHARED: "tile.edge_multicast"({{.*}}) {axis = "n", parts = 2 : i64}

// BYTES:      %[[COUNT:.*]] = "tile.edge_rows"(
// BYTES:      %[[ROWS:.*]] = "tile.box_rows"(%[[COUNT]]) {most = 64 : i64}
// BYTES:      %[[MORE:.*]] = arith.muli %[[ROWS]], %c128_i32
// BYTES:      "sm.arrive_expect_more"(%{{.*}}, %[[MORE]]) {bytes = 8192 : i64}
// BYTES:      "tile.edge_boxes"({{.*}}, %[[COUNT]], %{{.*}})
// BYTES-NEXT: "tile.load_boxes"(
!a = memref<120x320xbf16, 1>
!b = memref<256x320xbf16, 1>
!c = memref<120x256xbf16, 1>
!ta = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<64x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !ta
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !ta, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

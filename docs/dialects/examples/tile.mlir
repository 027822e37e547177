// Examples of ops of `tile`, written by `python test/fuzz/op_examples.py`.

func.func @tile.accumulator() {
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x256xf32>>
  return
}

func.func @tile.add_lanes(%acc: !tile.acc<tensor<1x4xf32>>) {
  "tile.add_lanes"(%acc) {lanes = 32 : i64, operandSegmentSizes = array<i32: 1, 0>} : (!tile.acc<tensor<1x4xf32>>) -> ()
  return
}

func.func @tile.apply_epilogue(%values: vector<16xf32>, %to: !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, %i: index, %j: index, %start: i32, %row: i32, %column: i32) {
  %apply_epilogue = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {behind = [0, 0], extents = [128, 256], first = 0 : i64, whole = "ij"} : (vector<16xf32>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, index, index, i32, i32, i32) -> vector<2xbf16>
  return
}

func.func @tile.apply_to_row(%values: vector<32xf32>, %to: !tile.map<i8, [112, 39], [112], [16, 128], "none">, %row: i32, %column: i32, %inside: i1) {
  %apply_to_row = "tile.apply_to_row"(%values, %to, %row, %column, %inside) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {first = 0 : i64, width = 4 : i64} : (vector<32xf32>, !tile.map<i8, [112, 39], [112], [16, 128], "none">, i32, i32, i1) -> vector<4xf32>
  return
}

func.func @tile.await_mma() {
  "tile.await_mma"() {pending = 0 : i64} : () -> ()
  return
}

func.func @tile.await_piece(%ring: !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) {
  %await_piece = "tile.await_piece"(%ring) : (!pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> !tile.smem<tensor<128x32xbf16>, "k", "64B">
  return
}

func.func @tile.await_sums(%acc: !tile.acc<tensor<128x256xf32>>) {
  %await_sums = "tile.await_sums"(%acc) : (!tile.acc<tensor<128x256xf32>>) -> !tile.acc<tensor<128x256xf32>>
  return
}

func.func @tile.batch(%i: index) {
  %batch:2 = "tile.batch"(%i) {count = -1 : i64, tiles = 1 : i64} : (index) -> (index, index)
  return
}

func.func @tile.block_scale(%amax: f32) {
  %block_scale:3 = "tile.block_scale"(%amax) {block = 32 : i64, element = f4E2M1FN, rounding = "floor", scale = f8E8M0FNU} : (f32) -> (i32, f32, f32)
  return
}

func.func @tile.blockwise_matmul(%a: tensor<130x384xf8E4M3FN>, %b: tensor<24x384xf8E4M3FN>, %a_scales: tensor<3x130xf32>, %b_scales: tensor<3x24xf32>) {
  %blockwise_matmul = "tile.blockwise_matmul"(%a, %b, %a_scales, %b_scales) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_form = "1x128", a_major = "k", b_form = "1x128", b_major = "k"} : (tensor<130x384xf8E4M3FN>, tensor<24x384xf8E4M3FN>, tensor<3x130xf32>, tensor<3x24xf32>) -> tensor<130x24xbf16>
  return
}

func.func @tile.blockwise_mma(%acc: !tile.acc<tensor<64x16xf32>>, %a: !tile.smem<tensor<64x128xf8E4M3FN>, "k", "none">, %b: !tile.smem<tensor<16x128xf8E4M3FN>, "k", "none">, %accumulate: i1, %a_scales: !tile.smem<tensor<1x64xf32>, "k", "linear">, %b_scales: !tile.smem<tensor<1x16xf32>, "k", "linear">, %i: index, %j: index, %k: index) {
  "tile.blockwise_mma"(%acc, %a, %b, %accumulate, %a_scales, %b_scales, %i, %j, %k) {a_form = "1x128", b_form = "1x128"} : (!tile.acc<tensor<64x16xf32>>, !tile.smem<tensor<64x128xf8E4M3FN>, "k", "none">, !tile.smem<tensor<16x128xf8E4M3FN>, "k", "none">, i1, !tile.smem<tensor<1x64xf32>, "k", "linear">, !tile.smem<tensor<1x16xf32>, "k", "linear">, index, index, index) -> ()
  return
}

func.func @tile.blockwise_pair_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x128xf8E4M3FN>, "k", "128B">, %b: !tile.smem<tensor<64x128xf8E4M3FN>, "k", "128B">, %accumulate: i1, %a_scales: !tile.smem<tensor<1x128xf32>, "k", "linear">, %b_scales: memref<32x8xf32, 1>, %i: index, %j: index, %k: index) {
  "tile.blockwise_pair_mma"(%acc, %a, %b, %accumulate, %a_scales, %b_scales, %i, %j, %k) {a_form = "1x128", b_form = "128x128"} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x128xf8E4M3FN>, "k", "128B">, !tile.smem<tensor<64x128xf8E4M3FN>, "k", "128B">, i1, !tile.smem<tensor<1x128xf32>, "k", "linear">, memref<32x8xf32, 1>, index, index, index) -> ()
  return
}

func.func @tile.box_rows(%rows: index) {
  %box_rows = "tile.box_rows"(%rows) {most = 64 : i64} : (index) -> i32
  return
}

func.func @tile.clear_sums(%acc: !tile.acc<tensor<16x32xi32>>) {
  "tile.clear_sums"(%acc) : (!tile.acc<tensor<16x32xi32>>) -> ()
  return
}

func.func @tile.clear_unit(%memory: !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>, %slot: i32, %unit: i32) {
  "tile.clear_unit"(%memory, %slot, %unit) {row = 64 : i64, tile = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>, i32, i32) -> ()
  return
}

func.func @tile.copy(%view: memref<?x71xi8, 1>, %tile: !tile.smem<tensor<16x128xi8>, "k", "none">, %i: index, %j: index) {
  "tile.copy"(%view, %tile, %i, %j) : (memref<?x71xi8, 1>, !tile.smem<tensor<16x128xi8>, "k", "none">, index, index) -> ()
  return
}

func.func @tile.copy_together(%arg0: memref<72x71xui8, 1>, %arg1: !tile.smem<tensor<32x128xui8>, "k", "128B">, %arg2: index, %arg3: index) {
  "tile.copy_together"() ({
    "tile.copy"(%arg0, %arg1, %arg2, %arg3) {whole = "none"} : (memref<72x71xui8, 1>, !tile.smem<tensor<32x128xui8>, "k", "128B">, index, index) -> ()
  }) : () -> ()
  return
}

func.func @tile.counted_batch(%i: index, %each: i32) {
  %counted_batch:2 = "tile.counted_batch"(%i, %each) {count = -1 : i64, tiles = -1 : i64} : (index, i32) -> (index, index)
  return
}

func.func @tile.counted_place(%number: i32, %counted: i32) {
  %counted_place:2 = "tile.counted_place"(%number, %counted) {group = 8 : i64, order = "n", tiles = [-1, 2]} : (i32, i32) -> (index, index)
  return
}

func.func @tile.cta_tile() {
  %ij:2 = "tile.cta_tile"() : () -> (index, index)
  return
}

func.func @tile.dual_lane_mma(%acc: !tile.acc<tensor<1x8xf32>>, %a: memref<1x464xbf16, 1>, %b: memref<66x464xbf16, 1>, %i: index, %j: index, %k: index, %accumulate: i1, %b2: memref<66x464xbf16, 1>) {
  "tile.dual_lane_mma"(%acc, %a, %b, %i, %j, %k, %accumulate, %b2) {depth = 512 : i64, lanes = 32 : i64} : (!tile.acc<tensor<1x8xf32>>, memref<1x464xbf16, 1>, memref<66x464xbf16, 1>, index, index, index, i1, memref<66x464xbf16, 1>) -> ()
  return
}

func.func @tile.dual_matmul(%a: tensor<37x71xbf16>, %b: tensor<48x71xbf16>, %b2: tensor<48x71xbf16>) {
  %dual_matmul = "tile.dual_matmul"(%a, %b, %b2) ({
  ^bb0(%x: f32, %arg4: f32):
    %0 = arith.mulf %x, %arg4 : f32
    %1 = arith.truncf %0 : f32 to f8E4M3FN
    "tile.keep"(%1) : (f8E4M3FN) -> ()
    "tile.keep"(%0) : (f32) -> ()
    "tile.yield"(%0) : (f32) -> ()
  }) {a_major = "k", b2_major = "k", b_major = "k"} : (tensor<37x71xbf16>, tensor<48x71xbf16>, tensor<48x71xbf16>) -> tensor<37x48xf32>
  return
}

func.func @tile.dual_mma(%acc: !tile.acc<tensor<64x128xf32>>, %a: !tile.smem<tensor<64x16xbf16>, "k", "none">, %b: !tile.smem<tensor<64x16xbf16>, "k", "none">, %accumulate: i1, %b2: !tile.smem<tensor<64x16xbf16>, "k", "none">) {
  "tile.dual_mma"(%acc, %a, %b, %accumulate, %b2) : (!tile.acc<tensor<64x128xf32>>, !tile.smem<tensor<64x16xbf16>, "k", "none">, !tile.smem<tensor<64x16xbf16>, "k", "none">, i1, !tile.smem<tensor<64x16xbf16>, "k", "none">) -> ()
  return
}

func.func @tile.dual_pair_mma(%acc: !tile.acc<tensor<128x256xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %accumulate: i1, %b2: !tile.smem<tensor<64x64xbf16>, "k", "128B">) {
  "tile.dual_pair_mma"(%acc, %a, %b, %accumulate, %b2) : (!tile.acc<tensor<128x256xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, i1, !tile.smem<tensor<64x64xbf16>, "k", "128B">) -> ()
  return
}

func.func @tile.edge_box_rows(%rows: index) {
  %edge_box_rows = "tile.edge_box_rows"(%rows) {most = 64 : i64, parts = 2 : i64, unit = 8 : i64} : (index) -> i32
  return
}

func.func @tile.edge_boxes(%map: !tile.map<bf16, [128, 200], [256], [64, 128], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %i: index, %j: index, %count: index, %end: !tile.map<bf16, [128, 200], [256], [64, 8], "128B">) {
  "tile.edge_boxes"(%map, %tile, %barrier, %i, %j, %count, %end) : (!tile.map<bf16, [128, 200], [256], [64, 128], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !llvm.ptr<3>, index, index, index, !tile.map<bf16, [128, 200], [256], [64, 8], "128B">) -> ()
  return
}

func.func @tile.edge_load(%map: !tile.map<bf16, [128, 200], [256], [64, 128], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %i: index, %j: index, %count: index, %end: !tile.map<bf16, [128, 200], [256], [64, 8], "128B">) {
  "tile.edge_load"(%map, %tile, %i, %j, %count, %end) : (!tile.map<bf16, [128, 200], [256], [64, 128], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, index, index, index, !tile.map<bf16, [128, 200], [256], [64, 8], "128B">) -> ()
  return
}

func.func @tile.edge_multicast(%map: !tile.map<bf16, [128, 90], [256], [64, 32], "128B">, %tile: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %i: index, %j: index, %count: index, %end: !tile.map<bf16, [128, 90], [256], [64, 8], "128B">) {
  "tile.edge_multicast"(%map, %tile, %i, %j, %count, %end) {axis = "m", parts = 2 : i64} : (!tile.map<bf16, [128, 90], [256], [64, 32], "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, index, index, index, !tile.map<bf16, [128, 90], [256], [64, 8], "128B">) -> ()
  return
}

func.func @tile.edge_multicast_boxes(%map: !tile.map<bf16, [128, 90], [256], [64, 32], "128B">, %tile: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %mask: i16, %i: index, %j: index, %count: index, %end: !tile.map<bf16, [128, 90], [256], [64, 8], "128B">) {
  "tile.edge_multicast_boxes"(%map, %tile, %barrier, %mask, %i, %j, %count, %end) {axis = "m", parts = 2 : i64} : (!tile.map<bf16, [128, 90], [256], [64, 32], "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, !llvm.ptr<3>, i16, index, index, index, !tile.map<bf16, [128, 90], [256], [64, 8], "128B">) -> ()
  return
}

func.func @tile.edge_rows(%i: index, %step: index) {
  %edge_rows = "tile.edge_rows"(%i, %step) {extent = 90 : i64, first = 2 : i64, rows = 64 : i64, unit = 8 : i64} : (index, index) -> index
  return
}

func.func @tile.element(%source: tensor<3xbf16>) {
  %element = "tile.element"(%source) {axes = "n"} : (tensor<3xbf16>) -> bf16
  return
}

func.func @tile.finish_sums(%acc: !tile.acc<tensor<16x32xi32>>) {
  "tile.finish_sums"(%acc) : (!tile.acc<tensor<16x32xi32>>) -> ()
  return
}

func.func @tile.for_each_tile(%arg0: !pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>, %arg1: memref<512x512xbf16, 1>) {
  "tile.for_each_tile"() ({
  ^bb0(%i: index, %j: index):
    %acc_slot = "pipe.wait"(%arg0) : (!pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>) -> !pipe.slot<[!tile.acc<tensor<128x256xf32>>]>
    %acc = "pipe.tile"(%acc_slot) {index = 0 : i64} : (!pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) -> !tile.acc<tensor<128x256xf32>>
    "tile.store"(%acc, %arg1, %i, %j) ({
    ^bb0(%x: f32):
      %0 = arith.truncf %x : f32 to bf16
      "tile.yield"(%0) : (bf16) -> ()
    }) : (!tile.acc<tensor<128x256xf32>>, memref<512x512xbf16, 1>, index, index) -> ()
    "pipe.release"(%arg0) : (!pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>) -> ()
  }) {group = 8 : i64, order = "grouped", tiles = [4, 2]} : () -> ()
  return
}

func.func @tile.gather_boxes(%map: !tile.map<bf16, [512, 2048], [1024], [64, 1], "128B">, %tile: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %i: index, %j: index) {
  "tile.gather_boxes"(%map, %tile, %barrier, %i, %j) : (!tile.map<bf16, [512, 2048], [1024], [64, 1], "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, !llvm.ptr<3>, index, index) -> ()
  return
}

func.func @tile.gathered_dual_matmul(%a: tensor<2048x512xbf16>, %b: tensor<4x4096x512xbf16>, %b2: tensor<4x4096x512xbf16>, %offsets: tensor<4xi32>, %rows: tensor<1024xi32>) {
  %gathered_dual_matmul = "tile.gathered_dual_matmul"(%a, %b, %b2, %offsets, %rows) ({
  ^bb0(%x: f32, %arg6: f32):
    %0 = arith.mulf %x, %arg6 : f32
    %1 = arith.truncf %0 : f32 to bf16
    "tile.yield"(%1) : (bf16) -> ()
  }) {a_major = "k", b2_major = "k", b_major = "k"} : (tensor<2048x512xbf16>, tensor<4x4096x512xbf16>, tensor<4x4096x512xbf16>, tensor<4xi32>, tensor<1024xi32>) -> tensor<1024x4096xbf16>
  return
}

func.func @tile.gathered_matmul(%a: tensor<53x46xf16>, %b: tensor<9x79x46xf16>, %offsets: tensor<9xi32>, %rows: tensor<57xi32>) {
  %gathered_matmul = "tile.gathered_matmul"(%a, %b, %offsets, %rows) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to f8E5M2
    "tile.keep"(%0) : (f8E5M2) -> ()
    "tile.keep"(%x) : (f32) -> ()
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<53x46xf16>, tensor<9x79x46xf16>, tensor<9xi32>, tensor<57xi32>) -> tensor<57x79xf32>
  return
}

func.func @tile.gathered_rows(%whole: memref<53x46xf16, 1>, %first: index, %count: index, %rows: memref<57xi32, 1>) {
  %gathered_rows = "tile.gathered_rows"(%whole, %first, %count, %rows) : (memref<53x46xf16, 1>, index, index, memref<57xi32, 1>) -> memref<57x46xf16, 1>
  return
}

func.func @tile.gathered_store(%view: memref<130x136xf32, 1>) {
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<64x32xf32>>
  %workspace = "tile.workspace"() {start = "any"} : () -> memref<256x32xf32, 1>
  %workspace_0 = "tile.workspace"() {start = "zero"} : () -> memref<1x1xi32, 1>
  %ij:2 = "tile.cta_tile"() : () -> (index, index)
  "tile.gathered_store"(%acc, %workspace, %workspace_0, %view, %ij#0, %ij#1) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) : (!tile.acc<tensor<64x32xf32>>, memref<256x32xf32, 1>, memref<1x1xi32, 1>, memref<130x136xf32, 1>, index, index) -> ()
  return
}

func.func @tile.group(%i: index, %offsets: memref<4xi32, 1>) {
  %group:4 = "tile.group"(%i, %offsets) {extent = 300 : i64, tile = 128 : i64, together = 1 : i64} : (index, memref<4xi32, 1>) -> (index, index, index, index)
  return
}

func.func @tile.group_at(%i: index, %offsets: memref<4xi32, 1>, %at_row: i32, %at_place: i32) {
  %group_at:4 = "tile.group_at"(%i, %offsets, %at_row, %at_place) {extent = 300 : i64, tile = 128 : i64, together = 1 : i64} : (index, memref<4xi32, 1>, i32, i32) -> (index, index, index, index)
  return
}

func.func @tile.group_atoms(%group: index, %offsets: memref<2xi32, 1>) {
  %group_atoms = "tile.group_atoms"(%group, %offsets) {extent = 55 : i64} : (index, memref<2xi32, 1>) -> index
  return
}

func.func @tile.group_columns(%whole: memref<6x79xf64, strided<[1, 6]>, 1>, %first: index, %count: index) {
  %group_columns = "tile.group_columns"(%whole, %first, %count) : (memref<6x79xf64, strided<[1, 6]>, 1>, index, index) -> memref<6x79xf64, strided<[1, 6]>, 1>
  return
}

func.func @tile.group_depth(%group: index, %offsets: memref<40xi32, 1>) {
  %group_depth:2 = "tile.group_depth"(%group, %offsets) {extent = 79 : i64} : (index, memref<40xi32, 1>) -> (index, index)
  return
}

func.func @tile.group_place(%number: i32, %counted: i32, %offsets: memref<8xi32, 1>, %at_row: i32, %at_place: i32) {
  %group_place:2 = "tile.group_place"(%number, %counted, %offsets, %at_row, %at_place) {extent = 4096 : i64, group = 8 : i64, order = "grouped", tile = 128 : i64, tiles = [-1, 32], together = 1 : i64} : (i32, i32, memref<8xi32, 1>, i32, i32) -> (index, index)
  return
}

func.func @tile.group_rows(%whole: memref<300x5120xbf16, 1>, %first: index, %count: index) {
  %group_rows = "tile.group_rows"(%whole, %first, %count) : (memref<300x5120xbf16, 1>, index, index) -> memref<300x5120xbf16, 1>
  return
}

func.func @tile.group_scales(%whole: memref<2x1x32x4x4xf8E8M0FNU, 1>, %first: index, %count: index) {
  %group_scales = "tile.group_scales"(%whole, %first, %count) {form = "atoms"} : (memref<2x1x32x4x4xf8E8M0FNU, 1>, index, index) -> memref<2x1x32x4x4xf8E8M0FNU, 1>
  return
}

func.func @tile.group_starts(%offsets: memref<4xi32, 1>) {
  %group_starts:3 = "tile.group_starts"(%offsets) {extent = 300 : i64, tile = 128 : i64, together = 1 : i64} : (memref<4xi32, 1>) -> (i32, i32, i32)
  return
}

func.func @tile.group_steps(%count: index) {
  %group_steps = "tile.group_steps"(%count) {depth = 16 : i64, least = 1 : i64, less = 0 : i64, most = 5 : i64} : (index) -> index
  return
}

func.func @tile.grouped_blockwise_matmul(%a: tensor<5x384xf8E4M3FN>, %b: tensor<5x136x384xf8E5M2>, %a_scales: tensor<3x5xf32>, %b_scales: tensor<5x2x4xf32>, %offsets: tensor<5xi32>) {
  %grouped_blockwise_matmul = "tile.grouped_blockwise_matmul"(%a, %b, %a_scales, %b_scales, %offsets) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_form = "1x128", a_major = "k", b_form = "128x128", b_major = "k"} : (tensor<5x384xf8E4M3FN>, tensor<5x136x384xf8E5M2>, tensor<3x5xf32>, tensor<5x2x4xf32>, tensor<5xi32>) -> tensor<5x136xbf16>
  return
}

func.func @tile.grouped_dual_matmul(%a: tensor<12x36xf16>, %b: tensor<1x36x26xf16>, %b2: tensor<1x36x26xf16>, %offsets: tensor<1xi32>) {
  %grouped_dual_matmul = "tile.grouped_dual_matmul"(%a, %b, %b2, %offsets) ({
  ^bb0(%x: f32, %arg5: f32):
    %0 = arith.mulf %x, %arg5 : f32
    %1 = arith.truncf %0 : f32 to bf16
    %2 = arith.truncf %0 : f32 to f16
    "tile.keep"(%2) : (f16) -> ()
    "tile.yield"(%1) : (bf16) -> ()
  }) {a_major = "k", b2_major = "mn", b_major = "mn"} : (tensor<12x36xf16>, tensor<1x36x26xf16>, tensor<1x36x26xf16>, tensor<1xi32>) -> tensor<12x26xbf16>
  return
}

func.func @tile.grouped_matmul(%a: tensor<300x5120xbf16>, %b: tensor<4x4096x5120xbf16>, %offsets: tensor<4xi32>) {
  %grouped_matmul = "tile.grouped_matmul"(%a, %b, %offsets) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<300x5120xbf16>, tensor<4x4096x5120xbf16>, tensor<4xi32>) -> tensor<300x4096xbf16>
  return
}

func.func @tile.grouped_scaled_matmul(%a: tensor<55x64xf4E2M1FN>, %b: tensor<2x16x64xf6E2M3FN>, %a_scales: tensor<2x1x32x4x4xf8E8M0FNU>, %b_scales: tensor<2x1x1x32x4x4xf8E8M0FNU>, %offsets: tensor<2xi32>) {
  %grouped_scaled_matmul = "tile.grouped_scaled_matmul"(%a, %b, %a_scales, %b_scales, %offsets) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to f16
    "tile.yield"(%0) : (f16) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64} : (tensor<55x64xf4E2M1FN>, tensor<2x16x64xf6E2M3FN>, tensor<2x1x32x4x4xf8E8M0FNU>, tensor<2x1x1x32x4x4xf8E8M0FNU>, tensor<2xi32>) -> tensor<55x16xf16>
  return
}

func.func @tile.has_sums(%acc: !tile.acc<tensor<1x4xf32>>) {
  %has_sums = "tile.has_sums"(%acc) : (!tile.acc<tensor<1x4xf32>>) -> i1
  return
}

func.func @tile.held_element(%source: memref<2048x2048xbf16, 1>, %values: vector<2xbf16>) {
  %held_element = "tile.held_element"(%source, %values) {axes = "mn"} : (memref<2048x2048xbf16, 1>, vector<2xbf16>) -> bf16
  return
}

func.func @tile.join(%first: vector<4xf32>, %second: vector<4xf32>) {
  %join = "tile.join"(%first, %second) : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>
  return
}

func.func @tile.keep(%a: tensor<37x71xbf16>, %b: tensor<48x71xbf16>, %b2: tensor<48x71xbf16>) {
  %dual_matmul = "tile.dual_matmul"(%a, %b, %b2) ({
  ^bb0(%x: f32, %arg4: f32):
    %0 = arith.mulf %x, %arg4 : f32
    %1 = arith.truncf %0 : f32 to f8E4M3FN
    "tile.keep"(%1) : (f8E4M3FN) -> ()
    "tile.yield"(%0) : (f32) -> ()
  }) {a_major = "k", b2_major = "k", b_major = "k"} : (tensor<37x71xbf16>, tensor<48x71xbf16>, tensor<48x71xbf16>) -> tensor<37x48xf32>
  return
}

func.func @tile.keep_groups(%a: tensor<256x64xbf16>, %b: tensor<256x64xbf16>) {
  %matmul = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.keep_groups"(%x) {group = 32 : i64, reduce = "amax"} : (f32) -> ()
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<256x64xbf16>, tensor<256x64xbf16>) -> tensor<256x256xbf16>
  return
}

func.func @tile.kept(%a: tensor<1x39x224xf4E2M1FN>, %b: tensor<224x224xf6E2M3FN>, %a_scales: tensor<1x1x2x32x4x4xf8E8M0FNU>, %b_scales: tensor<2x2x32x4x4xf8E8M0FNU>) {
  %scaled_matmul = "tile.scaled_matmul"(%a, %b, %a_scales, %b_scales) ({
  ^bb0(%x: f32):
    %quantize = "tile.quantize"(%x) {block = 32 : i64, rounding = "floor", scale = f8E8M0FNU} : (f32) -> f4E2M1FN
    "tile.yield"(%quantize) : (f4E2M1FN) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64} : (tensor<1x39x224xf4E2M1FN>, tensor<224x224xf6E2M3FN>, tensor<1x1x2x32x4x4xf8E8M0FNU>, tensor<2x2x32x4x4xf8E8M0FNU>) -> tensor<1x39x224xf4E2M1FN>
  %kept = "tile.kept"(%scaled_matmul) {number = 0 : i64} : (tensor<1x39x224xf4E2M1FN>) -> tensor<1x1x2x32x4x4xf8E8M0FNU>
  return
}

func.func @tile.kernel() {
  "tile.kernel"() ({
  ^bb0(%a: memref<64x128xbf16, 1>, %b: memref<96x128xbf16, 1>, %c: memref<64x96xbf16, 1>):
    %ij:2 = "tile.cta_tile"() : () -> (index, index)
    %acc = "tile.accumulator"() : () -> !tile.acc<tensor<128x128xf32>>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %k = %c0 to %c2 step %c1 {
      %a_tile = "tile.load"(%a, %ij#0, %k) : (memref<64x128xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
      %b_tile = "tile.load"(%b, %ij#1, %k) : (memref<96x128xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
      %adds = arith.cmpi ne, %k, %c0 : index
      "tile.mma"(%acc, %a_tile, %b_tile, %adds) : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, i1) -> ()
    }
    "tile.store"(%acc, %c, %ij#0, %ij#1) ({
    ^bb0(%x: f32):
      %0 = arith.truncf %x : f32 to bf16
      "tile.yield"(%0) : (bf16) -> ()
    }) : (!tile.acc<tensor<128x128xf32>>, memref<64x96xbf16, 1>, index, index) -> ()
  }) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "matmul_bf16_64x96x128", threads = 128 : i64} : () -> ()
  return
}

func.func @tile.lane_mma(%acc: !tile.acc<tensor<1x4xf32>>, %a: memref<1x672xbf16, 1>, %b: memref<520x672xbf16, 1>, %i: index, %j: index, %k: index, %accumulate: i1) {
  "tile.lane_mma"(%acc, %a, %b, %i, %j, %k, %accumulate) {depth = 768 : i64, lanes = 32 : i64} : (!tile.acc<tensor<1x4xf32>>, memref<1x672xbf16, 1>, memref<520x672xbf16, 1>, index, index, index, i1) -> ()
  return
}

func.func @tile.level_boxes(%map: !tile.map<bf16, [5120, 8192], [10240], [64, 32], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %i: index, %j: index, %count: index) {
  "tile.level_boxes"(%map, %tile, %barrier, %i, %j, %count) : (!tile.map<bf16, [5120, 8192], [10240], [64, 32], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !llvm.ptr<3>, index, index, index) -> ()
  return
}

func.func @tile.level_load(%map: !tile.map<bf16, [5120, 8192], [10240], [64, 32], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %i: index, %j: index, %count: index) {
  "tile.level_load"(%map, %tile, %i, %j, %count) : (!tile.map<bf16, [5120, 8192], [10240], [64, 32], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, index, index, index) -> ()
  return
}

func.func @tile.level_mma(%acc: !tile.acc<tensor<256x128xf32>>, %a: !tile.smem<tensor<256x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %accumulate: i1, %count: index) {
  "tile.level_mma"(%acc, %a, %b, %accumulate, %count) {unit = 8 : i64} : (!tile.acc<tensor<256x128xf32>>, !tile.smem<tensor<256x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, i1, index) -> ()
  return
}

func.func @tile.level_rows(%rows: index) {
  %level_rows = "tile.level_rows"(%rows) {most = 128 : i64, unit = 32 : i64} : (index) -> i32
  return
}

func.func @tile.load(%view: memref<512x256xbf16, 1>, %i: index, %j: index) {
  %tile = "tile.load"(%view, %i, %j) : (memref<512x256xbf16, 1>, index, index) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
  return
}

func.func @tile.load_ahead(%map: !tile.map<bf16, [2048, 2048], [4096], [32, 128], "64B">, %ring: !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, %i: index, %j: index) {
  "tile.load_ahead"(%map, %ring, %i, %j) {pieces = 4 : i64} : (!tile.map<bf16, [2048, 2048], [4096], [32, 128], "64B">, !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, index, index) -> ()
  return
}

func.func @tile.load_boxes(%map: !tile.map<bf16, [256, 512], [512], [64, 128], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %i: index, %j: index) {
  "tile.load_boxes"(%map, %tile, %barrier, %i, %j) : (!tile.map<bf16, [256, 512], [512], [64, 128], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !llvm.ptr<3>, index, index) -> ()
  return
}

func.func @tile.load_matrices(%piece: !tile.smem<tensor<128x32xbf16>, "k", "64B">, %row: i32) {
  %load_matrices = "tile.load_matrices"(%piece, %row) {column = 0 : i64} : (!tile.smem<tensor<128x32xbf16>, "k", "64B">, i32) -> vector<8xbf16>
  return
}

func.func @tile.load_piece(%map: !tile.map<bf16, [2048, 2048], [4096], [32, 128], "64B">, %ring: !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, %i: index, %j: index) {
  "tile.load_piece"(%map, %ring, %i, %j) : (!tile.map<bf16, [2048, 2048], [4096], [32, 128], "64B">, !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, index, index) -> ()
  return
}

func.func @tile.mark(%marks: memref<1x11xi32, 1>) {
  "tile.mark"(%marks) {column = 0 : i64, keep = "first", place = "start", unit = "cycles"} : (memref<1x11xi32, 1>) -> ()
  return
}

func.func @tile.matmul(%a: tensor<64x128xbf16>, %b: tensor<96x128xbf16>) {
  %matmul = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<64x128xbf16>, tensor<96x128xbf16>) -> tensor<64x96xbf16>
  return
}

func.func @tile.matrix(%stack: memref<4x4096x5120xbf16, 1>, %batch: index) {
  %matrix = "tile.matrix"(%stack, %batch) : (memref<4x4096x5120xbf16, 1>, index) -> memref<4096x5120xbf16, strided<[5120, 1], offset: ?>, 1>
  return
}

func.func @tile.mma(%acc: !tile.acc<tensor<128x256xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "none">, %b: !tile.smem<tensor<256x64xbf16>, "k", "none">, %accumulate: i1) {
  "tile.mma"(%acc, %a, %b, %accumulate) : (!tile.acc<tensor<128x256xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "none">, !tile.smem<tensor<256x64xbf16>, "k", "none">, i1) -> ()
  return
}

func.func @tile.multicast_boxes(%map: !tile.map<bf16, [256, 512], [512], [64, 64], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %barrier: !llvm.ptr<3>, %mask: i16, %i: index, %j: index) {
  "tile.multicast_boxes"(%map, %tile, %barrier, %mask, %i, %j) {axis = "n", parts = 2 : i64} : (!tile.map<bf16, [256, 512], [512], [64, 64], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !llvm.ptr<3>, i16, index, index) -> ()
  return
}

func.func @tile.next_buffer(%staging: !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) {
  "tile.next_buffer"(%staging) : (!pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> ()
  return
}

func.func @tile.ordered_batch(%i: index, %order: memref<4xi32, 1>) {
  %ordered_batch:2 = "tile.ordered_batch"(%i, %order) {count = 4 : i64, tiles = 8 : i64} : (index, memref<4xi32, 1>) -> (index, index)
  return
}

func.func @tile.ordered_matmul(%a: tensor<512x512xbf16>, %b: tensor<512x512xbf16>, %offsets: tensor<4xi32>, %order: tensor<4xi32>) {
  %ordered_matmul = "tile.ordered_matmul"(%a, %b, %offsets, %order) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "mn", b_major = "mn"} : (tensor<512x512xbf16>, tensor<512x512xbf16>, tensor<4xi32>, tensor<4xi32>) -> tensor<4x512x512xbf16>
  return
}

func.func @tile.pair_mma(%acc: !tile.acc<tensor<128x256xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %accumulate: i1) {
  "tile.pair_mma"(%acc, %a, %b, %accumulate) : (!tile.acc<tensor<128x256xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, i1) -> ()
  return
}

func.func @tile.pair_rank() {
  %rank = "tile.pair_rank"() : () -> index
  return
}

func.func @tile.part_place(%buffer: !tile.smem<tensor<16x32xf16>, "k", "64B">, %row: i32, %part: i32) {
  %part_place = "tile.part_place"(%buffer, %row, %part) {bytes = 4 : i64} : (!tile.smem<tensor<16x32xf16>, "k", "64B">, i32, i32) -> i32
  return
}

func.func @tile.partial(%memory: memref<1x1xi32, 1>, %row: i32, %column: i32) {
  %partial = "tile.partial"(%memory, %row, %column) : (memref<1x1xi32, 1>, i32, i32) -> !llvm.ptr<1>
  return
}

func.func @tile.place(%number: i32) {
  %ij:2 = "tile.place"(%number) {group = 8 : i64, order = "grouped", tiles = [4, 2]} : (i32) -> (index, index)
  return
}

func.func @tile.prefetch_boxes(%map: !tile.map<bf16, [256, 512], [512], [64, 128], "128B">, %i: index, %j: index) {
  "tile.prefetch_boxes"(%map, %i, %j) {axis = "", parts = 1 : i64, tile = !tile.smem<tensor<128x64xbf16>, "k", "128B">} : (!tile.map<bf16, [256, 512], [512], [64, 128], "128B">, index, index) -> ()
  return
}

func.func @tile.quantize(%a: tensor<1x39x224xf4E2M1FN>, %b: tensor<224x224xf6E2M3FN>, %a_scales: tensor<1x1x2x32x4x4xf8E8M0FNU>, %b_scales: tensor<2x2x32x4x4xf8E8M0FNU>) {
  %scaled_matmul = "tile.scaled_matmul"(%a, %b, %a_scales, %b_scales) ({
  ^bb0(%x: f32):
    %quantize = "tile.quantize"(%x) {block = 32 : i64, rounding = "floor", scale = f8E8M0FNU} : (f32) -> f4E2M1FN
    "tile.yield"(%quantize) : (f4E2M1FN) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64} : (tensor<1x39x224xf4E2M1FN>, tensor<224x224xf6E2M3FN>, tensor<1x1x2x32x4x4xf8E8M0FNU>, tensor<2x2x32x4x4xf8E8M0FNU>) -> tensor<1x39x224xf4E2M1FN>
  return
}

func.func @tile.read_ahead(%source: memref<512xf32, 1>, %i: index, %j: index) {
  "tile.read_ahead"(%source, %i, %j) {axes = "n"} : (memref<512xf32, 1>, index, index) -> ()
  return
}

func.func @tile.read_operand(%source: memref<512xf32, 1>, %row: i32, %column: i32, %inside: i1) {
  %read_operand = "tile.read_operand"(%source, %row, %column, %inside) {axes = "n"} : (memref<512xf32, 1>, i32, i32, i1) -> vector<2xf32>
  return
}

func.func @tile.read_fragment(%sums: !tile.acc<tensor<128x256xf32>>, %start: i32) {
  %read_fragment = "tile.read_fragment"(%sums, %start) {row = 0 : i64} : (!tile.acc<tensor<128x256xf32>>, i32) -> vector<16xf32>
  return
}

func.func @tile.read_matrices(%sums: !tile.acc<tensor<128x128xf32>>, %lanes: i32, %start: i32) {
  %read_matrices:2 = "tile.read_matrices"(%sums, %lanes, %start) {row = 0 : i64} : (!tile.acc<tensor<128x128xf32>>, i32, i32) -> (vector<16xf32>, vector<16xf32>)
  return
}

func.func @tile.read_row(%sums: !tile.acc<tensor<128x256xf32>>, %lanes: i32, %start: i32) {
  %read_row = "tile.read_row"(%sums, %lanes, %start) {row = 0 : i64} : (!tile.acc<tensor<128x256xf32>>, i32, i32) -> vector<32xf32>
  return
}

func.func @tile.read_rows(%sums: !tile.acc<tensor<128x128xf32>>) {
  %read_rows:2 = "tile.read_rows"(%sums) {row = 0 : i64} : (!tile.acc<tensor<128x128xf32>>) -> (vector<32xf32>, vector<32xf32>)
  return
}

func.func @tile.reduced_store(%view: memref<200x64xbf16, 1>) {
  %acc = "tile.accumulator"() : () -> !tile.acc<tensor<64x40xf32>>
  %staging_ring = "pipe.create"() : () -> !pipe.ring<1 : i64, [!tile.smem<tensor<40x64xf32>, "k", "128B">]>
  %transposed = "tile.transposed"(%view) : (memref<200x64xbf16, 1>) -> memref<64x200xbf16, strided<[1, 64]>, 1>
  %ij:2 = "tile.cta_tile"() : () -> (index, index)
  "tile.reduced_store"(%acc, %staging_ring, %transposed, %ij#0, %ij#1) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) : (!tile.acc<tensor<64x40xf32>>, !pipe.ring<1 : i64, [!tile.smem<tensor<40x64xf32>, "k", "128B">]>, memref<64x200xbf16, strided<[1, 64]>, 1>, index, index) -> ()
  return
}

func.func @tile.rotated_step(%k: index, %place: index) {
  %step = "tile.rotated_step"(%k, %place) {by = 1 : i64, steps = 2 : i64, together = 4 : i64} : (index, index) -> index
  return
}

func.func @tile.scaled_matmul(%a: tensor<24x32xf4E2M1FN>, %b: tensor<35x32xf6E2M3FN>, %a_scales: tensor<1x1x32x4x4xf8E8M0FNU>, %b_scales: tensor<1x1x32x4x4xf8E8M0FNU>) {
  %scaled_matmul = "tile.scaled_matmul"(%a, %b, %a_scales, %b_scales) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64} : (tensor<24x32xf4E2M1FN>, tensor<35x32xf6E2M3FN>, tensor<1x1x32x4x4xf8E8M0FNU>, tensor<1x1x32x4x4xf8E8M0FNU>) -> tensor<24x35xbf16>
  return
}

func.func @tile.scaled_mma(%acc: !tile.acc<tensor<128x32xf32>>, %a: !tile.smem<tensor<128x128xf4E2M1FN>, "k", "128B">, %b: !tile.smem<tensor<32x128xf6E2M3FN>, "k", "128B">, %accumulate: i1, %a_scales: !tile.smem<tensor<128x4xf8E8M0FNU>, "k", "blocked">, %b_scales: !tile.smem<tensor<32x4xf8E8M0FNU>, "k", "blocked">, %j: index, %k: index) {
  "tile.scaled_mma"(%acc, %a, %b, %accumulate, %a_scales, %b_scales, %j, %k) {a_type = "e2m1", b_type = "e2m3", block = 32 : i64, extent = 64 : i64, kind = "mxf8f6f4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>} : (!tile.acc<tensor<128x32xf32>>, !tile.smem<tensor<128x128xf4E2M1FN>, "k", "128B">, !tile.smem<tensor<32x128xf6E2M3FN>, "k", "128B">, i1, !tile.smem<tensor<128x4xf8E8M0FNU>, "k", "blocked">, !tile.smem<tensor<32x4xf8E8M0FNU>, "k", "blocked">, index, index) -> ()
  return
}

func.func @tile.scaled_pair_mma(%acc: !tile.acc<tensor<128x192xf32>>, %a: !tile.smem<tensor<128x256xf4E2M1FN>, "k", "128B">, %b: !tile.smem<tensor<96x256xf6E2M3FN>, "k", "128B">, %accumulate: i1, %a_scales: !tile.smem<tensor<128x8xf8E8M0FNU>, "k", "blocked">, %b_scales: !tile.smem<tensor<192x8xf8E8M0FNU>, "k", "blocked">, %j: index, %k: index) {
  "tile.scaled_pair_mma"(%acc, %a, %b, %accumulate, %a_scales, %b_scales, %j, %k) {a_type = "e2m1", b_type = "e2m3", block = 32 : i64, extent = 32 : i64, kind = "mxf8f6f4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>} : (!tile.acc<tensor<128x192xf32>>, !tile.smem<tensor<128x256xf4E2M1FN>, "k", "128B">, !tile.smem<tensor<96x256xf6E2M3FN>, "k", "128B">, i1, !tile.smem<tensor<128x8xf8E8M0FNU>, "k", "blocked">, !tile.smem<tensor<192x8xf8E8M0FNU>, "k", "blocked">, index, index) -> ()
  return
}

func.func @tile.short_dual_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %accumulate: i1, %b2: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %last: i1) {
  "tile.short_dual_mma"(%acc, %a, %b, %accumulate, %b2, %last) {depth = 48 : i64} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, i1, !tile.smem<tensor<64x64xbf16>, "k", "128B">, i1) -> ()
  return
}

func.func @tile.short_dual_pair_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<32x64xbf16>, "k", "128B">, %accumulate: i1, %b2: !tile.smem<tensor<32x64xbf16>, "k", "128B">, %last: i1) {
  "tile.short_dual_pair_mma"(%acc, %a, %b, %accumulate, %b2, %last) {depth = 48 : i64} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<32x64xbf16>, "k", "128B">, i1, !tile.smem<tensor<32x64xbf16>, "k", "128B">, i1) -> ()
  return
}

func.func @tile.short_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %accumulate: i1, %last: i1) {
  "tile.short_mma"(%acc, %a, %b, %accumulate, %last) {depth = 48 : i64} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, i1, i1) -> ()
  return
}

func.func @tile.short_pair_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %b: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %accumulate: i1, %last: i1) {
  "tile.short_pair_mma"(%acc, %a, %b, %accumulate, %last) {depth = 48 : i64} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, i1, i1) -> ()
  return
}

func.func @tile.split_rank() {
  %part = "tile.split_rank"() : () -> index
  return
}

func.func @tile.split_start(%rank: index, %steps: index) {
  %first = "tile.split_start"(%rank, %steps) : (index, index) -> index
  return
}

func.func @tile.stack_tiles(%matrices: index, %each: i32) {
  %stack_tiles = "tile.stack_tiles"(%matrices, %each) : (index, i32) -> i32
  return
}

func.func @tile.staged_element(%source: memref<2048x2048xbf16, 1>, %piece: !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) {
  %element = "tile.staged_element"(%source, %piece) {axes = "mn"} : (memref<2048x2048xbf16, 1>, !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> bf16
  return
}

func.func @tile.staged_quantized(%acc: !tile.acc<tensor<128x32xf32>>, %to: !tile.map<i8, [112, 39], [112], [16, 128], "none">, %staging: !pipe.ring<2 : i64, [!tile.smem<tensor<128x16xi8>, "k", "none">]>, %i: index, %j: index, %scales: memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>) {
  "tile.staged_quantized"(%acc, %to, %staging, %i, %j, %scales) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {block = 32 : i64, element = f4E2M1FN, rounding = "floor", write = "rows"} : (!tile.acc<tensor<128x32xf32>>, !tile.map<i8, [112, 39], [112], [16, 128], "none">, !pipe.ring<2 : i64, [!tile.smem<tensor<128x16xi8>, "k", "none">]>, index, index, memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>) -> ()
  return
}

func.func @tile.staged_store(%acc: !tile.acc<tensor<128x256xf32>>, %to: !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, %staging: !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, %i: index, %j: index) {
  "tile.staged_store"(%acc, %to, %staging, %i, %j) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {write = "matrices"} : (!tile.acc<tensor<128x256xf32>>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, index, index) -> ()
  return
}

func.func @tile.staging_buffer(%staging: !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) {
  %staging_buffer = "tile.staging_buffer"(%staging) : (!pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> !tile.smem<tensor<128x32xbf16>, "k", "64B">
  return
}

func.func @tile.store(%acc: !tile.acc<tensor<128x256xf32>>, %view: memref<512x512xbf16, 1>, %i: index, %j: index) {
  "tile.store"(%acc, %view, %i, %j) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) : (!tile.acc<tensor<128x256xf32>>, memref<512x512xbf16, 1>, index, index) -> ()
  return
}

func.func @tile.store_groups(%acc: !tile.acc<tensor<64x64xf32>>, %view: memref<256x8xf32, 1>, %i: index, %j: index) {
  "tile.store_groups"(%acc, %view, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {columns = 256 : i64, group = 32 : i64, reduce = "amax"} : (!tile.acc<tensor<64x64xf32>>, memref<256x8xf32, 1>, index, index) -> ()
  return
}

func.func @tile.store_quantized(%acc: !tile.acc<tensor<128x32xf32>>, %view: memref<39x224xf4E2M1FN, strided<[224, 1], offset: ?>, 1>, %scales: memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>, %i: index, %j: index) {
  "tile.store_quantized"(%acc, %view, %scales, %i, %j) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {block = 32 : i64, rounding = "floor"} : (!tile.acc<tensor<128x32xf32>>, memref<39x224xf4E2M1FN, strided<[224, 1], offset: ?>, 1>, memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>, index, index) -> ()
  return
}

func.func @tile.sums_place(%acc: !tile.acc<tensor<1x4xf32>>) {
  %sums_place:2 = "tile.sums_place"(%acc) : (!tile.acc<tensor<1x4xf32>>) -> (i32, i32)
  return
}

func.func @tile.sums_row(%acc: !tile.acc<tensor<1x4xf32>>) {
  %sums_row = "tile.sums_row"(%acc) {number = 0 : i64} : (!tile.acc<tensor<1x4xf32>>) -> vector<1xf32>
  return
}

func.func @tile.tensor_map(%view: memref<64x128xbf16, 1>) {
  %map = "tile.tensor_map"(%view) : (memref<64x128xbf16, 1>) -> !tile.map<bf16, [128, 64], [256], [8, 64], "none">
  return
}

func.func @tile.thread_column(%sums: !tile.acc<tensor<128x128xf32>>) {
  %thread_column = "tile.thread_column"(%sums) {neighbours = 2 : i64} : (!tile.acc<tensor<128x128xf32>>) -> i32
  return
}

func.func @tile.thread_lanes() {
  %thread_lanes = "tile.thread_lanes"() : () -> i32
  return
}

func.func @tile.thread_row(%sums: !tile.acc<tensor<128x256xf32>>) {
  %thread_row = "tile.thread_row"(%sums) : (!tile.acc<tensor<128x256xf32>>) -> i32
  return
}

func.func @tile.tile_count(%rows: index) {
  %tile_count = "tile.tile_count"(%rows) {tile = 64 : i64, whole = 1 : i64} : (index) -> i32
  return
}

func.func @tile.tma_gather(%map: !tile.map<bf16, [512, 2048], [1024], [64, 1], "128B">, %tile: !tile.smem<tensor<64x64xbf16>, "k", "128B">, %i: index, %j: index) {
  "tile.tma_gather"(%map, %tile, %i, %j) : (!tile.map<bf16, [512, 2048], [1024], [64, 1], "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">, index, index) -> ()
  return
}

func.func @tile.tma_load(%map: !tile.map<bf16, [128, 64], [256], [8, 64], "none">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "none">, %i: index, %j: index) {
  "tile.tma_load"(%map, %tile, %i, %j) : (!tile.map<bf16, [128, 64], [256], [8, 64], "none">, !tile.smem<tensor<128x64xbf16>, "k", "none">, index, index) -> ()
  return
}

func.func @tile.tma_multicast(%map: !tile.map<bf16, [256, 512], [512], [64, 64], "128B">, %tile: !tile.smem<tensor<128x64xbf16>, "k", "128B">, %i: index, %j: index) {
  "tile.tma_multicast"(%map, %tile, %i, %j) {axis = "n", parts = 2 : i64} : (!tile.map<bf16, [256, 512], [512], [64, 64], "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, index, index) -> ()
  return
}

func.func @tile.tma_store(%map: !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, %buffer: !tile.smem<tensor<128x32xbf16>, "k", "64B">, %i: index, %j: index, %start: i32) {
  "tile.tma_store"(%map, %buffer, %i, %j, %start) {extents = [128, 256]} : (!tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, !tile.smem<tensor<128x32xbf16>, "k", "64B">, index, index, i32) -> ()
  return
}

func.func @tile.transposed(%view: memref<200x64xbf16, 1>) {
  %transposed = "tile.transposed"(%view) : (memref<200x64xbf16, 1>) -> memref<64x200xbf16, strided<[1, 64]>, 1>
  return
}

func.func @tile.exchanged_weight_mma(%acc: !tile.acc<tensor<128x128xf32>>, %a: !tile.smem<tensor<128x128xi8>, "k", "none">, %b: !tile.smem<tensor<128x128xbf16>, "k", "none">, %accumulate: i1, %j: index, %k: index, %scales: memref<4096x8xbf16, 1>) {
  "tile.exchanged_weight_mma"(%acc, %a, %b, %accumulate, %j, %k, %scales) {b_type = "s8", group = 128 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0>} : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x128xi8>, "k", "none">, !tile.smem<tensor<128x128xbf16>, "k", "none">, i1, index, index, memref<4096x8xbf16, 1>) -> ()
  return
}

func.func @tile.view_mma(%acc: !tile.acc<tensor<14x33xf32>>, %a: memref<62x50xf32, strided<[1, 62], offset: ?>, 1>, %b: memref<31x50xf32, strided<[1, 31]>, 1>, %i: index, %j: index, %k: index, %accumulate: i1) {
  "tile.view_mma"(%acc, %a, %b, %i, %j, %k, %accumulate) {depth = 6 : i64} : (!tile.acc<tensor<14x33xf32>>, memref<62x50xf32, strided<[1, 62], offset: ?>, 1>, memref<31x50xf32, strided<[1, 31]>, 1>, index, index, index, i1) -> ()
  return
}

func.func @tile.weight_matmul(%a: tensor<130x384xf16>, %b: tensor<136x384xui4>, %scales: tensor<136x1xbf16>) {
  %weight_matmul = "tile.weight_matmul"(%a, %b, %scales) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 384 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<130x384xf16>, tensor<136x384xui4>, tensor<136x1xbf16>) -> tensor<130x136xf32>
  return
}

func.func @tile.weight_mma(%acc: !tile.acc<tensor<64x32xf32>>, %a: !tile.smem<tensor<64x32xf16>, "k", "none">, %b: !tile.smem<tensor<32x16xui8>, "k", "none">, %accumulate: i1, %j: index, %k: index, %scales: memref<136x1xbf16, 1>) {
  "tile.weight_mma"(%acc, %a, %b, %accumulate, %j, %k, %scales) {b_type = "u4", group = 384 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0>} : (!tile.acc<tensor<64x32xf32>>, !tile.smem<tensor<64x32xf16>, "k", "none">, !tile.smem<tensor<32x16xui8>, "k", "none">, i1, index, index, memref<136x1xbf16, 1>) -> ()
  return
}

func.func @tile.workspace() {
  %workspace = "tile.workspace"() {start = "any"} : () -> memref<256x32xf32, 1>
  return
}

func.func @tile.write_codes(%codes: vector<1xi8>, %view: memref<512x512xf4E2M1FN, 1>, %row: i32, %column: i32) {
  "tile.write_codes"(%codes, %view, %row, %column) {behind = 0 : i64} : (vector<1xi8>, memref<512x512xf4E2M1FN, 1>, i32, i32) -> ()
  return
}

func.func @tile.write_group(%value: f32, %view: memref<256x8xf32, 1>, %row: i32, %column: i32) {
  "tile.write_group"(%value, %view, %row, %column) {columns = 256 : i64, group = 32 : i64, reduce = "amax"} : (f32, memref<256x8xf32, 1>, i32, i32) -> ()
  return
}

func.func @tile.write_matrices(%staging: !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, %arg1: i32, %arg2: i32, %values: vector<16xf32>, %to: !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, %i: index, %j: index, %start: i32, %row: i32, %column: i32) {
  %staging_buffer = "tile.staging_buffer"(%staging) : (!pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> !tile.smem<tensor<128x32xbf16>, "k", "64B">
  %0 = arith.muli %arg1, %arg2 : i32
  %apply_epilogue = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: f32):
    %1 = arith.truncf %x : f32 to bf16
    "tile.yield"(%1) : (bf16) -> ()
  }) {behind = [0, 0], extents = [128, 256], first = 0 : i64, whole = "ij"} : (vector<16xf32>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, index, index, i32, i32, i32) -> vector<2xbf16>
  %apply_epilogue_0 = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: f32):
    %1 = arith.truncf %x : f32 to bf16
    "tile.yield"(%1) : (bf16) -> ()
  }) {behind = [8, 0], extents = [128, 256], first = 2 : i64, whole = "ij"} : (vector<16xf32>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, index, index, i32, i32, i32) -> vector<2xbf16>
  %apply_epilogue_1 = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: f32):
    %1 = arith.truncf %x : f32 to bf16
    "tile.yield"(%1) : (bf16) -> ()
  }) {behind = [0, 8], extents = [128, 256], first = 4 : i64, whole = "ij"} : (vector<16xf32>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, index, index, i32, i32, i32) -> vector<2xbf16>
  %apply_epilogue_2 = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: f32):
    %1 = arith.truncf %x : f32 to bf16
    "tile.yield"(%1) : (bf16) -> ()
  }) {behind = [8, 8], extents = [128, 256], first = 6 : i64, whole = "ij"} : (vector<16xf32>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, index, index, i32, i32, i32) -> vector<2xbf16>
  "tile.write_matrices"(%staging_buffer, %0, %apply_epilogue, %apply_epilogue_0, %apply_epilogue_1, %apply_epilogue_2) {column = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 4>} : (!tile.smem<tensor<128x32xbf16>, "k", "64B">, i32, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) -> ()
  return
}

func.func @tile.write_pairs(%staging: !pipe.ring<2 : i64, [!tile.smem<tensor<16x16xi32>, "k", "64B">]>, %arg1: i32, %arg2: i32, %values: vector<4xi32>, %to: !tile.map<i32, [72, -1], [288], [16, 16], "64B">, %i: index, %j: index, %start: i32, %row: i32, %column: i32) {
  %staging_buffer = "tile.staging_buffer"(%staging) : (!pipe.ring<2 : i64, [!tile.smem<tensor<16x16xi32>, "k", "64B">]>) -> !tile.smem<tensor<16x16xi32>, "k", "64B">
  %0 = arith.muli %arg1, %arg2 : i32
  %apply_epilogue = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: i32):
    "tile.yield"(%x) : (i32) -> ()
  }) {behind = [0, 0], extents = [16, 32], first = 0 : i64, whole = "none"} : (vector<4xi32>, !tile.map<i32, [72, -1], [288], [16, 16], "64B">, index, index, i32, i32, i32) -> vector<2xi32>
  %apply_epilogue_0 = "tile.apply_epilogue"(%values, %to, %i, %j, %start, %row, %column) ({
  ^bb0(%x: i32):
    "tile.yield"(%x) : (i32) -> ()
  }) {behind = [8, 0], extents = [16, 32], first = 2 : i64, whole = "none"} : (vector<4xi32>, !tile.map<i32, [72, -1], [288], [16, 16], "64B">, index, index, i32, i32, i32) -> vector<2xi32>
  "tile.write_pairs"(%staging_buffer, %0, %apply_epilogue, %apply_epilogue_0) {column = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (!tile.smem<tensor<16x16xi32>, "k", "64B">, i32, vector<2xi32>, vector<2xi32>) -> ()
  return
}

func.func @tile.write_partial(%values: vector<2xf32>, %memory: memref<256x32xf32, 1>, %row: i32, %column: i32) {
  "tile.write_partial"(%values, %memory, %row, %column) {behind = 0 : i64, first = 0 : i64, width = 2 : i64} : (vector<2xf32>, memref<256x32xf32, 1>, i32, i32) -> ()
  return
}

func.func @tile.write_row(%values: vector<32xf32>, %view: memref<512x512xbf16, 1>, %row: i32, %column: i32) {
  "tile.write_row"(%values, %view, %row, %column) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {behind = 0 : i64, first = 0 : i64, whole = "j", width = 16 : i64} : (vector<32xf32>, memref<512x512xbf16, 1>, i32, i32) -> ()
  return
}

func.func @tile.write_scales(%codes: vector<1xi8>, %scales: memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>, %row: i32, %number: i32) {
  "tile.write_scales"(%codes, %scales, %row, %number) : (vector<1xi8>, memref<1x2x32x4x4xf8E8M0FNU, strided<[1024, 512, 16, 4, 1], offset: ?>, 1>, i32, i32) -> ()
  return
}

func.func @tile.write_unit(%outputs: vector<16xi8>, %buffer: !tile.smem<tensor<128x16xi8>, "k", "none">, %row: i32, %column: i32) {
  "tile.write_unit"(%outputs, %buffer, %row, %column) : (vector<16xi8>, !tile.smem<tensor<128x16xi8>, "k", "none">, i32, i32) -> ()
  return
}

func.func @tile.write_words(%words: vector<1xi32>, %view: memref<83x10xf16, 1>, %row: i32, %column: i32) {
  "tile.write_words"(%words, %view, %row, %column) : (vector<1xi32>, memref<83x10xf16, 1>, i32, i32) -> ()
  return
}

func.func @tile.yield(%a: tensor<512x256xbf16>, %b: tensor<512x256xbf16>) {
  %matmul = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %0 = arith.truncf %x : f32 to bf16
    "tile.yield"(%0) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<512x256xbf16>, tensor<512x256xbf16>) -> tensor<512x512xbf16>
  return
}

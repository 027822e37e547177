// Examples of ops of `sm`, written by `python test/fuzz/op_examples.py`.

func.func @sm.advance(%descriptor: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %units: i32) {
  %advance = "sm.advance"(%descriptor, %units) : (!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, i32) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
  return
}

func.func @sm.advance_position(%position: !sm.place_in_ring) {
  "sm.advance_position"(%position) {slots = 1 : i64} : (!sm.place_in_ring) -> ()
  return
}

func.func @sm.ahead_ring() {
  %ahead_full = "sm.barriers"() {arrivals = 1 : i64, label = "ahead.full", offset = 212992 : i64, slots = 4 : i64} : () -> !sm.mbarriers<4 : i64>
  %slot_memory = "sm.slot_memory"() {offsets = [0], slots = 4 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
  %ahead_ring = "sm.ahead_ring"(%ahead_full, %slot_memory) : (!sm.mbarriers<4 : i64>, !pipe.slot<[!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> !pipe.ring<4 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
  return
}

func.func @sm.any_barrier(%flag: i1) {
  %any_barrier = "sm.any_barrier"(%flag) {id = 1 : i64, threads = 128 : i64} : (i1) -> i1
  return
}

func.func @sm.any_part_barrier(%flag: i1, %part: i32) {
  %any_part_barrier = "sm.any_part_barrier"(%flag, %part) {id = 8 : i64, parts = 2 : i64, threads = 128 : i64} : (i1, i32) -> i1
  return
}

func.func @sm.approximate(%value: f32) {
  %approximate = "sm.approximate"(%value) {function = "ex2"} : (f32) -> f32
  return
}

func.func @sm.arrive(%barrier: !llvm.ptr<7>) {
  "sm.arrive"(%barrier) {scope = "cta"} : (!llvm.ptr<7>) -> ()
  return
}

func.func @sm.arrive_expect_more(%barrier: !llvm.ptr<3>, %more: i32) {
  "sm.arrive_expect_more"(%barrier, %more) {bytes = 2048 : i64} : (!llvm.ptr<3>, i32) -> ()
  return
}

func.func @sm.arrive_expect_tx(%barrier: !llvm.ptr<3>) {
  "sm.arrive_expect_tx"(%barrier) {bytes = 16 : i64} : (!llvm.ptr<3>) -> ()
  return
}

func.func @sm.await_grids() {
  "sm.await_grids"() : () -> ()
  return
}

func.func @sm.await_turn(%turn: i32) {
  "sm.await_turn"(%turn) {id = 14 : i64, turns = 2 : i64} : (i32) -> ()
  return
}

func.func @sm.ballot(%flag: i1) {
  %ballot = "sm.ballot"(%flag) : (i1) -> i32
  return
}

func.func @sm.barrier(%barriers: !sm.mbarriers<6 : i64>, %index: i32) {
  %barrier = "sm.barrier"(%barriers, %index) : (!sm.mbarriers<6 : i64>, i32) -> !llvm.ptr<3>
  return
}

func.func @sm.barrier_init(%barrier: !llvm.ptr<3>) {
  "sm.barrier_init"(%barrier) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
  return
}

func.func @sm.barriers() {
  %turns_full = "sm.barriers"() {arrivals = 4 : i64, label = "turns.full", offset = 229472 : i64, slots = 1 : i64} : () -> !sm.mbarriers<1 : i64>
  return
}

func.func @sm.base_descriptor(%memory: !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) {
  %a_base = "sm.base_descriptor"(%memory) {tile = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
  return
}

func.func @sm.bulk_commit() {
  "sm.bulk_commit"() : () -> ()
  return
}

func.func @sm.bulk_wait() {
  "sm.bulk_wait"() {pending = 1 : i64} : () -> ()
  return
}

func.func @sm.claim_parts(%word: !llvm.ptr<1>, %counts: i1) {
  %claim_parts:2 = "sm.claim_parts"(%word, %counts) {parts = 2 : i64, polls = 16 : i64} : (!llvm.ptr<1>, i1) -> (i32, i32)
  return
}

func.func @sm.cluster_barrier() {
  "sm.cluster_barrier"() {releases = false} : () -> ()
  return
}

func.func @sm.columns() {
  %tensor_memory = "sm.tensor_memory"() {columns = 512 : i64, offset = 196736 : i64} : () -> !sm.allocation
  %columns = "sm.columns"(%tensor_memory) {each = 256 : i64, first = 0 : i64, slots = 2 : i64} : (!sm.allocation) -> !tile.acc<tensor<128x256xf32>>
  return
}

func.func @sm.commit(%barrier: !llvm.ptr<3>) {
  "sm.commit"(%barrier) {cta_group = 1 : i64, operandSegmentSizes = array<i32: 1, 0>} : (!llvm.ptr<3>) -> ()
  return
}

func.func @sm.converge() {
  "sm.converge"() : () -> ()
  return
}

func.func @sm.copy_ring() {
  %slot_memory = "sm.slot_memory"() {offsets = [2048, 4096], slots = 1 : i64} : () -> !pipe.slot<[!tile.smem<tensor<16x128xi8>, "k", "128B">, !tile.smem<tensor<32x128xui8>, "k", "128B">]>
  %copy_ring = "sm.copy_ring"(%slot_memory) : (!pipe.slot<[!tile.smem<tensor<16x128xi8>, "k", "128B">, !tile.smem<tensor<32x128xui8>, "k", "128B">]>) -> !pipe.ring<1 : i64, [!tile.smem<tensor<16x128xi8>, "k", "128B">, !tile.smem<tensor<32x128xui8>, "k", "128B">]>
  return
}

func.func @sm.count_arrival(%word: !llvm.ptr<1>, %counts: i1) {
  %count_arrival = "sm.count_arrival"(%word, %counts) {parts = 4 : i64} : (!llvm.ptr<1>, i1) -> i1
  return
}

func.func @sm.cp_async(%to: !llvm.ptr<3>, %source: !llvm.ptr<1>, %read: i32) {
  "sm.cp_async"(%to, %source, %read) {bytes = 4 : i64, cache = "ca", operandSegmentSizes = array<i32: 1, 1, 1>} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}

func.func @sm.cp_async_commit() {
  "sm.cp_async_commit"() : () -> ()
  return
}

func.func @sm.cp_async_wait() {
  "sm.cp_async_wait"() {pending = 0 : i64} : () -> ()
  return
}

func.func @sm.cta_barrier() {
  "sm.cta_barrier"() : () -> ()
  return
}

func.func @sm.cta_mask() {
  %cta_mask = "sm.cta_mask"() {along = [], whose = "pair"} : () -> i16
  return
}

func.func @sm.cta_place() {
  "tile.kernel"() ({
  ^bb0(%a: memref<512x256xbf16, 1>, %b: memref<512x256xbf16, 1>, %c: memref<512x512xbf16, 1>):
    %cta_place:4 = "sm.cta_place"() : () -> (i32, i32, i32, i1)
  }) {arg_names = ["a", "b", "c"], cluster = [2, 1, 1], grid = [8, 1, 1], sym_name = "matmul_bf16_512x512x256", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.cut_bf16(%low: f32, %high: f32) {
  %cut_bf16 = "sm.cut_bf16"(%low, %high) : (f32, f32) -> i32
  return
}

func.func @sm.each_rank(%mask: i16, %arg1: !llvm.ptr<3>) {
  "sm.each_rank"(%mask) ({
  ^bb0(%arg2: i32):
    %mapa = "sm.mapa"(%arg1, %arg2) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
    "sm.arrive"(%mapa) {scope = "cta"} : (!llvm.ptr<7>) -> ()
  }) {by = "warpgroup"} : (i16) -> ()
  return
}

func.func @sm.early() {
  "tile.kernel"() ({
  ^bb0(%a: memref<512x256xbf16, 1>, %b: memref<512x256xbf16, 1>, %c: memref<512x512xbf16, 1>):
    %a_map = "tile.tensor_map"(%a) : (memref<512x256xbf16, 1>) -> !tile.map<bf16, [256, 512], [512], [64, 128], "128B">
    %b_map = "tile.tensor_map"(%b) : (memref<512x256xbf16, 1>) -> !tile.map<bf16, [256, 512], [512], [64, 64], "128B">
    "sm.early"() ({
      %clusterid_x = "sm.special_register"() {register = "clusterid.x"} : () -> i32
      %c0 = arith.constant 0 : index
      %c0_0 = arith.constant 0 : index
      %ij:2 = "tile.place"(%clusterid_x) {group = 8 : i64, order = "grouped", tiles = [4, 4]} : (i32) -> (index, index)
      "tile.prefetch_boxes"(%a_map, %ij#0, %c0_0) {axis = "", parts = 1 : i64, tile = !tile.smem<tensor<128x64xbf16>, "k", "128B">} : (!tile.map<bf16, [256, 512], [512], [64, 128], "128B">, index, index) -> ()
      "tile.prefetch_boxes"(%b_map, %ij#1, %c0_0) {axis = "m", parts = 2 : i64, tile = !tile.smem<tensor<128x64xbf16>, "k", "128B">} : (!tile.map<bf16, [256, 512], [512], [64, 64], "128B">, index, index) -> ()
      %c1 = arith.constant 1 : index
      "tile.prefetch_boxes"(%a_map, %ij#0, %c1) {axis = "", parts = 1 : i64, tile = !tile.smem<tensor<128x64xbf16>, "k", "128B">} : (!tile.map<bf16, [256, 512], [512], [64, 128], "128B">, index, index) -> ()
      "tile.prefetch_boxes"(%b_map, %ij#1, %c1) {axis = "m", parts = 2 : i64, tile = !tile.smem<tensor<128x64xbf16>, "k", "128B">} : (!tile.map<bf16, [256, 512], [512], [64, 64], "128B">, index, index) -> ()
    }) {warp = 4 : i64} : () -> ()
  }) {arg_names = ["a", "b", "c"], cluster = [2, 1, 1], grid = [2, 1, 1], sym_name = "matmul_bf16_512x512x256", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.elect() {
  %elect = "sm.elect"() : () -> i1
  return
}

func.func @sm.expect_more(%barrier: !llvm.ptr<3>, %more: i32) {
  "sm.expect_more"(%barrier, %more) {bytes = 0 : i64} : (!llvm.ptr<3>, i32) -> ()
  return
}

func.func @sm.expect_tx(%barrier: !llvm.ptr<3>) {
  "sm.expect_tx"(%barrier) {bytes = 1024 : i64} : (!llvm.ptr<3>) -> ()
  return
}

func.func @sm.fence() {
  "sm.fence"() {kind = "async_shared"} : () -> ()
  return
}

func.func @sm.first_warp() {
  "tile.kernel"() ({
  ^bb0(%a: memref<512x256xbf16, 1>, %b: memref<512x256xbf16, 1>, %c: memref<512x512xbf16, 1>):
    "sm.first_warp"() ({
      %c196736_i32 = arith.constant 196736 : i32
      %shared_address = "sm.shared_address"(%c196736_i32) : (i32) -> !llvm.ptr<3>
      "sm.tmem_alloc"(%shared_address) {columns = 512 : i64, cta_group = 2 : i64} : (!llvm.ptr<3>) -> ()
      "sm.tmem_relinquish"() {cta_group = 2 : i64} : () -> ()
    }) : () -> ()
  }) {arg_names = ["a", "b", "c"], cluster = [2, 1, 1], grid = [8, 1, 1], sym_name = "matmul_bf16_512x512x256", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.give_turn(%turn: i32) {
  "sm.give_turn"(%turn) {id = 14 : i64, turns = 2 : i64} : (i32) -> ()
  return
}

func.func @sm.in_preferred() {
  "tile.kernel"() ({
  ^bb0(%a: memref<512x256xbf16, 1>, %b: memref<512x256xbf16, 1>, %c: memref<512x512xbf16, 1>):
    %in_preferred = "sm.in_preferred"() : () -> i1
  }) {arg_names = ["a", "b", "c"], cluster = [4, 1, 1], grid = [4, 4, 1], sym_name = "matmul_bf16_512x512x256", threads = 128 : i64, tile.fallback = [2, 1, 1]} : () -> ()
  return
}

func.func @sm.keep(%before: vector<32xi32>) {
  %keep = "sm.keep"(%before) : (vector<32xi32>) -> vector<32xi32>
  return
}

func.func @sm.kernel() {
  "sm.kernel"() ({
  ^bb0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr<1>):
    %tid_x = "sm.special_register"() {register = "tid.x"} : () -> i32
    %c32_i32 = arith.constant 32 : i32
    %0 = arith.remui %tid_x, %c32_i32 : i32
    %c32_i32_0 = arith.constant 32 : i32
    %1 = arith.cmpi ult, %tid_x, %c32_i32_0 : i32
    %elect = "sm.elect"() : () -> i1
    %2 = arith.andi %elect, %1 : i1
    %c0_i32 = arith.constant 0 : i32
    %shared_address = "sm.shared_address"(%c0_i32) : (i32) -> !llvm.ptr<3>
    %smem_descriptor = "sm.smem_descriptor"(%shared_address) : (!llvm.ptr<3>) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
    %c98304_i32 = arith.constant 98304 : i32
    %shared_address_1 = "sm.shared_address"(%c98304_i32) : (i32) -> !llvm.ptr<3>
    %smem_descriptor_2 = "sm.smem_descriptor"(%shared_address_1) : (!llvm.ptr<3>) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
    %c1_i32 = arith.constant 1 : i32
    %3 = llvm.alloca %c1_i32 x i32 : (i32) -> !llvm.ptr
    %c0_i32_3 = arith.constant 0 : i32
    llvm.store %c0_i32_3, %3 : i32, !llvm.ptr
    %c1_i32_4 = arith.constant 1 : i32
    %4 = llvm.alloca %c1_i32_4 x i32 : (i32) -> !llvm.ptr
    %c0_i32_5 = arith.constant 0 : i32
    llvm.store %c0_i32_5, %4 : i32, !llvm.ptr
  }) {cluster = [2, 1, 1], launch = "{\22block\22: [192, 1, 1], \22cluster\22: [2, 1, 1], \22dynamic_shared_bytes\22: 196740, \22entry\22: \22matmul_bf16_512x512x256\22, \22epilogue\22: {\22arguments\22: [{\22axes\22: [\22m\22, \22n\22], \22tensor\22: null}], \22operations\22: [{\22attributes\22: {\22type\22: \22bf16\22}, \22name\22: \22arith.truncf\22, \22operands\22: [0]}], \22result\22: 1}, \22grid\22: [8, 1, 1], \22names\22: {\22barriers\22: [{\22count\22: 6, \22name\22: \22operands.full\22, \22offset_bytes\22: 196608}, {\22count\22: 6, \22name\22: \22operands.empty\22, \22offset_bytes\22: 196656}, {\22count\22: 2, \22name\22: \22accumulator.full\22, \22offset_bytes\22: 196704}, {\22count\22: 2, \22name\22: \22accumulator.empty\22, \22offset_bytes\22: 196720}], \22roles\22: [{\22first_warp\22: 0, \22name\22: \22epilogue\22, \22warps\22: 4}, {\22first_warp\22: 4, \22name\22: \22load\22, \22warps\22: 1}, {\22first_warp\22: 5, \22name\22: \22mma\22, \22warps\22: 1}]}, \22parameters\22: [{\22box\22: [64, 128], \22dims\22: [256, 512], \22dtype\22: \22bf16\22, \22element_strides\22: [1, 1], \22interleave\22: \22none\22, \22kind\22: \22tensor_map\22, \22l2_promotion\22: \22128B\22, \22oob_fill\22: \22zero\22, \22strides_bytes\22: [512], \22swizzle\22: \22128B\22, \22tensor\22: \22a\22}, {\22box\22: [64, 128], \22dims\22: [256, 512], \22dtype\22: \22bf16\22, \22element_strides\22: [1, 1], \22interleave\22: \22none\22, \22kind\22: \22tensor_map\22, \22l2_promotion\22: \22128B\22, \22oob_fill\22: \22zero\22, \22strides_bytes\22: [512], \22swizzle\22: \22128B\22, \22tensor\22: \22b\22}, {\22alignment_bytes\22: 32, \22kind\22: \22pointer\22, \22tensor\22: \22c\22}], \22schedule\22: {\22cluster\22: [2, 1], \22pair\22: true, \22scheduler\22: \22static\22, \22split_k\22: 1, \22stages\22: 6, \22swizzle\22: [\22128B\22, \22128B\22], \22tile\22: [128, 256, 64], \22tmem_columns\22: 512}, \22source\22: {\22arguments\22: 2, \22inputs\22: [0, 1], \22transposed\22: [false, false]}, \22tensors\22: [{\22dtype\22: \22bf16\22, \22name\22: \22a\22, \22role\22: \22input\22, \22shape\22: [512, 256], \22strides\22: [256, 1]}, {\22dtype\22: \22bf16\22, \22name\22: \22b\22, \22role\22: \22input\22, \22shape\22: [512, 256], \22strides\22: [256, 1]}, {\22dtype\22: \22bf16\22, \22name\22: \22c\22, \22role\22: \22output\22, \22shape\22: [512, 512], \22strides\22: [512, 1]}], \22workspace_bytes\22: 0}", sym_name = "matmul_bf16_512x512x256", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.launch_dependents() {
  "sm.launch_dependents"() : () -> ()
  return
}

func.func @sm.ldmatrix(%address: !llvm.ptr<3>) {
  %ldmatrix = "sm.ldmatrix"(%address) {offset = 0 : i64, transposed = 0 : i64} : (!llvm.ptr<3>) -> vector<4xi32>
  return
}

func.func @sm.ldmatrix_padded(%address: !llvm.ptr<3>) {
  %ldmatrix_padded = "sm.ldmatrix_padded"(%address) {bits = 6 : i64, offset = 0 : i64} : (!llvm.ptr<3>) -> vector<4xi32>
  return
}

func.func @sm.leader_barrier(%barrier: !llvm.ptr<3>) {
  %leader_barrier = "sm.leader_barrier"(%barrier) : (!llvm.ptr<3>) -> !llvm.ptr<3>
  return
}

func.func @sm.leader_rank() {
  %leader_rank = "sm.leader_rank"() : () -> i32
  return
}

func.func @sm.reused_ring() {
  %ahead_full = "sm.barriers"() {arrivals = 1 : i64, label = "ahead.full", offset = 98336 : i64, slots = 2 : i64} : () -> !sm.mbarriers<2 : i64>
  %slot_memory = "sm.slot_memory"() {offsets = [0], slots = 2 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">]>
  %slot_memory_0 = "sm.slot_memory"() {offsets = [0, 32768], slots = 2 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>
  %reused_ring = "sm.reused_ring"(%ahead_full, %slot_memory, %slot_memory_0) : (!sm.mbarriers<2 : i64>, !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">]>, !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">]>
  return
}

func.func @sm.load_once(%address: !llvm.ptr<1>) {
  %load_once = "sm.load_once"(%address) : (!llvm.ptr<1>) -> vector<8xbf16>
  return
}

func.func @sm.mapa(%address: !llvm.ptr<3>, %rank: i32) {
  %mapa = "sm.mapa"(%address, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  return
}

func.func @sm.mma(%d: i32, %a: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %accumulate: i1) {
  "sm.mma"(%d, %a, %b, %accumulate) {a_major = "k", a_offset = 0 : i64, a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", cta_group = 2 : i64, d_type = "f32", k = 16 : i64, kind = "f16", m = 256 : i64, n = 256 : i64} : (i32, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, i1) -> ()
  return
}

func.func @sm.mma_of_tensor_memory(%d: i32, %a: i32, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %accumulate: i1) {
  "sm.mma_of_tensor_memory"(%d, %a, %b, %accumulate) {a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", k = 16 : i64, m = 128 : i64, n = 128 : i64} : (i32, i32, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, i1) -> ()
  return
}

func.func @sm.mma_sync(%d: !llvm.struct<"i32x4", (i32, i32, i32, i32)>, %a: vector<4xi32>, %b: vector<2xi32>) {
  %mma_sync = "sm.mma_sync"(%d, %a, %b) {a_type = "s8", b_type = "u8", d_type = "s32", k = 32 : i64} : (!llvm.struct<"i32x4", (i32, i32, i32, i32)>, vector<4xi32>, vector<2xi32>) -> !llvm.struct<"i32x4", (i32, i32, i32, i32)>
  return
}

func.func @sm.named_barrier() {
  "sm.named_barrier"() {id = 4 : i64, threads = 160 : i64} : () -> ()
  return
}

func.func @sm.narrow(%low: f32, %high: f32) {
  %narrow = "sm.narrow"(%low, %high) {to = "e2m1"} : (f32, f32) -> i16
  return
}

func.func @sm.operand(%ring: !pipe.ring<8 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>, %index: i32, %memory: !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) {
  %slot = "sm.slot"(%ring, %index) : (!pipe.ring<8 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>, i32) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>
  %a_base = "sm.base_descriptor"(%memory) {tile = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
  %a_operand = "sm.operand"(%slot, %a_base) : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>) -> !tile.smem<tensor<128x64xbf16>, "k", "128B">
  return
}

func.func @sm.part_barrier(%part: i32) {
  "sm.part_barrier"(%part) {id = 8 : i64, parts = 2 : i64, threads = 128 : i64} : (i32) -> ()
  return
}

func.func @sm.pin(%before: !llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>) {
  %pin = "sm.pin"(%before) : (!llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>) -> !llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
  return
}

func.func @sm.position() {
  %turns_fill = "sm.position"() {label = "turns.fill", stages = 1 : i64} : () -> !sm.place_in_ring
  return
}

func.func @sm.prefetch_box(%map: !llvm.ptr, %coordinates: i32, %coordinates1: i32) {
  "sm.prefetch_box"(%map, %coordinates, %coordinates1) {operandSegmentSizes = array<i32: 1, 2>} : (!llvm.ptr, i32, i32) -> ()
  return
}

func.func @sm.prefetch_tensor_map(%map: !llvm.ptr) {
  "sm.prefetch_tensor_map"(%map) : (!llvm.ptr) -> ()
  return
}

func.func @sm.product_columns() {
  %tensor_memory = "sm.tensor_memory"() {columns = 512 : i64, offset = 180288 : i64} : () -> !sm.allocation
  %products_done = "sm.barriers"() {arrivals = 1 : i64, label = "products.done", offset = 180224 : i64, slots = 2 : i64} : () -> !sm.mbarriers<2 : i64>
  "sm.product_columns"(%tensor_memory, %products_done) {each = 128 : i64, first = 0 : i64, slots = 2 : i64} : (!sm.allocation, !sm.mbarriers<2 : i64>) -> ()
  return
}

func.func @sm.prologue() {
  "tile.kernel"() ({
  ^bb0(%a: memref<64x128xbf16, 1>, %b: memref<96x128xbf16, 1>, %marks: memref<1x11xi32, 1>, %c: memref<64x96xbf16, 1>):
    %team:3 = "sm.team"() : () -> (i32, i32, i1)
    %slot_memory = "sm.slot_memory"() {offsets = [0, 32768], slots = 2 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>
    "sm.prologue"() ({
      %c512_i32 = arith.constant 512 : i32
      %c192_i32 = arith.constant 192 : i32
      scf.for %arg4 = %team#0 to %c512_i32 step %c192_i32  : i32 {
        %c0_i32 = arith.constant 0 : i32
        %c2_i32 = arith.constant 2 : i32
        %c1_i32 = arith.constant 1 : i32
        scf.for %arg5 = %c0_i32 to %c2_i32 step %c1_i32  : i32 {
          "tile.clear_unit"(%slot_memory, %arg5, %arg4) {row = 64 : i64, tile = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>, i32, i32) -> ()
        }
      }
      %c256_i32 = arith.constant 256 : i32
      %c192_i32_0 = arith.constant 192 : i32
      scf.for %arg4 = %team#0 to %c256_i32 step %c192_i32_0  : i32 {
        %c0_i32 = arith.constant 0 : i32
        %c2_i32 = arith.constant 2 : i32
        %c1_i32 = arith.constant 1 : i32
        scf.for %arg5 = %c0_i32 to %c2_i32 step %c1_i32  : i32 {
          "tile.clear_unit"(%slot_memory, %arg5, %arg4) {row = 96 : i64, tile = 1 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>, i32, i32) -> ()
        }
      }
      "sm.fence"() {kind = "async_shared"} : () -> ()
    }) : () -> ()
  }) {arg_names = ["a", "b", "marks", "c"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "matmul_bf16_64x96x128", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.query_cancel(%answer: i128) {
  %query_cancel = "sm.query_cancel"(%answer) {field = "x"} : (i128) -> i32
  return
}

func.func @sm.read_position(%position: !sm.place_in_ring) {
  %at:2 = "sm.read_position"(%position) : (!sm.place_in_ring) -> (i32, i32)
  return
}

func.func @sm.read_tally(%tally: !sm.number) {
  %read_tally = "sm.read_tally"(%tally) : (!sm.number) -> i32
  return
}

func.func @sm.resident() {
  "sm.resident"() {ctas = 1 : i64} : () -> ()
  return
}

func.func @sm.ring() {
  %claims_full = "sm.barriers"() {arrivals = 1 : i64, label = "claims.full", offset = 213152 : i64, slots = 2 : i64} : () -> !sm.mbarriers<2 : i64>
  %claims_empty = "sm.barriers"() {arrivals = 13 : i64, label = "claims.empty", offset = 213168 : i64, slots = 2 : i64} : () -> !sm.mbarriers<2 : i64>
  %slot_memory = "sm.slot_memory"() {offsets = [212992], slots = 2 : i64} : () -> !pipe.slot<[!pipe.response]>
  %ring = "sm.ring"(%claims_full, %claims_empty, %slot_memory) {under_way = 0 : i64} : (!sm.mbarriers<2 : i64>, !sm.mbarriers<2 : i64>, !pipe.slot<[!pipe.response]>) -> !pipe.ring<2 : i64, [!pipe.response]>
  return
}

func.func @sm.round_tf32(%value: f32) {
  %round_tf32 = "sm.round_tf32"(%value) : (f32) -> i32
  return
}

func.func @sm.run() {
  "sm.run"() ({
    "sm.bulk_wait"() {pending = 1 : i64} : () -> ()
  }) {by = "lane"} : () -> ()
  return
}

func.func @sm.scale_columns() {
  %tensor_memory = "sm.tensor_memory"() {columns = 128 : i64, offset = 196832 : i64} : () -> !sm.allocation
  %scales_empty = "sm.barriers"() {arrivals = 1 : i64, label = "scales.empty", offset = 196768 : i64, slots = 8 : i64} : () -> !sm.mbarriers<8 : i64>
  "sm.scale_columns"(%tensor_memory, %scales_empty) {a_first = 64 : i64, b_first = 68 : i64, end = 72 : i64, operandSegmentSizes = array<i32: 1, 1>, slots = 8 : i64} : (!sm.allocation, !sm.mbarriers<8 : i64>) -> ()
  return
}

func.func @sm.scaled_mma(%d: i32, %a: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, %accumulate: i1, %a_scales: i32, %b_scales: i32) {
  "sm.scaled_mma"(%d, %a, %b, %accumulate, %a_scales, %b_scales) {a_id = 0 : i64, a_major = "k", a_offset = 0 : i64, a_type = "e2m1", b_id = 0 : i64, b_major = "k", b_offset = 0 : i64, b_type = "e2m3", block = 32 : i64, cta_group = 1 : i64, kind = "mxf8f6f4", m = 128 : i64, n = 32 : i64, scale = "ue8m0"} : (i32, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>, i1, i32, i32) -> ()
  return
}

func.func @sm.scaled_mma_sync(%d: !llvm.struct<"f32x4", (f32, f32, f32, f32)>, %a: vector<4xi32>, %b: vector<2xi32>, %a_scales: i32, %b_scales: i32) {
  %scaled_mma_sync = "sm.scaled_mma_sync"(%d, %a, %b, %a_scales, %b_scales) {a_type = "e4m3", b_type = "e2m3", block = 32 : i64, id = 0 : i64, kind = "mxf8f6f4", scale = "ue8m0"} : (!llvm.struct<"f32x4", (f32, f32, f32, f32)>, vector<4xi32>, vector<2xi32>, i32, i32) -> !llvm.struct<"f32x4", (f32, f32, f32, f32)>
  return
}

func.func @sm.scaling_mma(%d: i32, %a: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 512 : i64, swizzle = "64B", version = 1 : i64}>, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 512 : i64, swizzle = "64B", version = 1 : i64}>, %accumulate: i1) {
  "sm.scaling_mma"(%d, %a, %b, %accumulate) {a_major = "k", a_offset = 49152 : i64, a_type = "bf16", b_major = "k", b_offset = 32768 : i64, b_type = "bf16", cta_group = 1 : i64, d_type = "f32", k = 16 : i64, kind = "f16", m = 128 : i64, n = 128 : i64, shift = 8 : i64} : (i32, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 512 : i64, swizzle = "64B", version = 1 : i64}>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 512 : i64, swizzle = "64B", version = 1 : i64}>, i1) -> ()
  return
}

func.func @sm.set_registers() {
  "sm.set_registers"() {action = "decrease", count = 40 : i64} : () -> ()
  return
}

func.func @sm.shared_address(%offset: i32) {
  %shared_address = "sm.shared_address"(%offset) : (i32) -> !llvm.ptr<3>
  return
}

func.func @sm.shared_memory() {
  "sm.shared_memory"() {bytes = 65568 : i64} : () -> ()
  return
}

func.func @sm.shuffle(%value: f32) {
  %shuffle = "sm.shuffle"(%value) {apart = 1 : i64} : (f32) -> f32
  return
}

func.func @sm.shuffle_from(%value: i32, %lane: i32) {
  %shuffle_from = "sm.shuffle_from"(%value, %lane) : (i32, i32) -> i32
  return
}

func.func @sm.shuffle_up(%value: i32) {
  %shuffle_up = "sm.shuffle_up"(%value) {apart = 1 : i64} : (i32) -> i32
  return
}

func.func @sm.slot(%ring: !pipe.ring<1 : i64, [!pipe.turn]>, %index: i32) {
  %slot = "sm.slot"(%ring, %index) : (!pipe.ring<1 : i64, [!pipe.turn]>, i32) -> !pipe.slot<[!pipe.turn]>
  return
}

func.func @sm.slot_address(%slot: !pipe.slot<[!pipe.response]>) {
  %slot_address = "sm.slot_address"(%slot) : (!pipe.slot<[!pipe.response]>) -> !llvm.ptr<3>
  return
}

func.func @sm.slot_memory() {
  %slot_memory = "sm.slot_memory"() {offsets = [212992], slots = 2 : i64} : () -> !pipe.slot<[!pipe.response]>
  return
}

func.func @sm.smem_descriptor(%address: !llvm.ptr<3>) {
  %smem_descriptor = "sm.smem_descriptor"(%address) : (!llvm.ptr<3>) -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
  return
}

func.func @sm.special_register() {
  %tid_x = "sm.special_register"() {register = "tid.x"} : () -> i32
  return
}

func.func @sm.staging() {
  %slot_memory = "sm.slot_memory"() {offsets = [0], slots = 2 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
  %staging = "sm.staging"(%slot_memory) : (!pipe.slot<[!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) -> !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>
  return
}

func.func @sm.stmatrix(%to: !llvm.ptr<3>, %words: i32, %words1: i32, %words2: i32, %words3: i32) {
  "sm.stmatrix"(%to, %words, %words1, %words2, %words3) {operandSegmentSizes = array<i32: 1, 4>} : (!llvm.ptr<3>, i32, i32, i32, i32) -> ()
  return
}

func.func @sm.stmatrix_transposed(%to: !llvm.ptr<3>, %words: i32, %words1: i32) {
  "sm.stmatrix_transposed"(%to, %words, %words1) {operandSegmentSizes = array<i32: 1, 2>} : (!llvm.ptr<3>, i32, i32) -> ()
  return
}

func.func @sm.table() {
  %table = "sm.table"() {symbol = "hilbert_curve", values = dense<"0x00000000010000000100010000000100000002000000030001000300010002000200020002000300030003000300020003000100020001000200000003000000040000000400010005000100050000000600000007000000070001000600010006000200070002000700030006000300050003000500020004000200040003000400040004000500050005000500040006000400070004000700050006000500060006000700060007000700060007000500070005000600040006000400070003000700020007000200060003000600030005000300040002000400020005000100050001000400000004000000050000000600010006000100070000000700000008000000090001000900010008000200080003000800030009000200090002000A0003000A0003000B0002000B0001000B0001000A0000000A0000000B0000000C0001000C0001000D0000000D0000000E0000000F0001000F0001000E0002000E0002000F0003000F0003000E0003000D0002000D0002000C0003000C0004000C0005000C0005000D0004000D0004000E0004000F0005000F0005000E0006000E0006000F0007000F0007000E0007000D0006000D0006000C0007000C0007000B0007000A0006000A0006000B0005000B0004000B0004000A0005000A000500090004000900040008000500080006000800060009000700090007000800080008000800090009000900090008000A0008000B0008000B0009000A0009000A000A000B000A000B000B000A000B0009000B0009000A0008000A0008000B0008000C0009000C0009000D0008000D0008000E0008000F0009000F0009000E000A000E000A000F000B000F000B000E000B000D000A000D000A000C000B000C000C000C000D000C000D000D000C000D000C000E000C000F000D000F000D000E000E000E000E000F000F000F000F000E000F000D000E000D000E000C000F000C000F000B000F000A000E000A000E000B000D000B000C000B000C000A000D000A000D0009000C0009000C0008000D0008000E0008000E0009000F0009000F0008000F0007000E0007000E0006000F0006000F0005000F0004000E0004000E0005000D0005000D0004000C0004000C0005000C0006000D0006000D0007000C0007000B0007000B0006000A0006000A00070009000700080007000800060009000600090005000800050008000400090004000A0004000A0005000B0005000B0004000B0003000B0002000A0002000A00030009000300080003000800020009000200090001000800010008000000090000000A0000000A0001000B0001000B0000000C0000000D0000000D0001000C0001000C0002000C0003000D0003000D0002000E0002000E0003000F0003000F0002000F0001000E0001000E0000000F000000"> : tensor<256xi32>} : () -> !llvm.ptr<1>
  return
}

func.func @sm.tally() {
  %operands_pending = "sm.tally"() {label = "operands.pending"} : () -> !sm.number
  return
}

func.func @sm.team() {
  "tile.kernel"() ({
  ^bb0(%a: memref<512x256xbf16, 1>, %b: memref<512x256xbf16, 1>, %c: memref<512x512xbf16, 1>):
    %team:3 = "sm.team"() : () -> (i32, i32, i1)
  }) {arg_names = ["a", "b", "c"], cluster = [2, 1, 1], grid = [8, 1, 1], sym_name = "matmul_bf16_512x512x256", threads = 192 : i64} : () -> ()
  return
}

func.func @sm.tensor_memory() {
  %tensor_memory = "sm.tensor_memory"() {columns = 128 : i64, offset = 65584 : i64} : () -> !sm.allocation
  return
}

func.func @sm.terms() {
  %slot_memory = "sm.slot_memory"() {offsets = [65536, 98304, 131072, 163840], slots = 2 : i64} : () -> !pipe.slot<[!tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">]>
  "sm.terms"(%slot_memory) : (!pipe.slot<[!tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">, !tile.smem<tensor<128x32xf32>, "k", "128B">]>) -> ()
  return
}

func.func @sm.tile_memory() {
  %tile_memory = "sm.tile_memory"() {offset = 0 : i64} : () -> !tile.smem<tensor<128x32xbf16>, "mn", "none">
  return
}

func.func @sm.tma_gather(%to: !llvm.ptr<3>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %coordinates: i32, %coordinates1: i32, %coordinates2: i32, %coordinates3: i32, %coordinates4: i32) {
  "sm.tma_gather"(%to, %map, %barrier, %coordinates, %coordinates1, %coordinates2, %coordinates3, %coordinates4) {cta_group = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 5>} : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()
  return
}

func.func @sm.tma_load(%to: !llvm.ptr<3>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %coordinates: i32, %coordinates1: i32) {
  "sm.tma_load"(%to, %map, %barrier, %coordinates, %coordinates1) {cta_group = 1 : i64, destination = "cta", operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>} : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  return
}

func.func @sm.tma_store(%map: !llvm.ptr, %source: !llvm.ptr<3>, %coordinates: i32, %coordinates1: i32) {
  "sm.tma_store"(%map, %source, %coordinates, %coordinates1) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  return
}

func.func @sm.tmem_alloc(%to: !llvm.ptr<3>) {
  "sm.tmem_alloc"(%to) {columns = 512 : i64, cta_group = 2 : i64} : (!llvm.ptr<3>) -> ()
  return
}

func.func @sm.tmem_base(%memory: !sm.allocation) {
  %tmem_base = "sm.tmem_base"(%memory) {apart = 16 : i64, barrier = 4 : i64, threads = 160 : i64} : (!sm.allocation) -> i32
  return
}

func.func @sm.tmem_copy(%to: i32, %source: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 128 : i64, swizzle = "none", version = 1 : i64}>) {
  "sm.tmem_copy"(%to, %source) {cta_group = 1 : i64, offset = 0 : i64, rows = 32 : i64} : (i32, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 128 : i64, swizzle = "none", version = 1 : i64}>) -> ()
  return
}

func.func @sm.tmem_dealloc(%address: i32) {
  "sm.tmem_dealloc"(%address) {columns = 512 : i64, cta_group = 2 : i64} : (i32) -> ()
  return
}

func.func @sm.tmem_load(%address: i32) {
  %tmem_load = "sm.tmem_load"(%address) {offset = 0 : i64, shape = "32x32b"} : (i32) -> vector<32xi32>
  return
}

func.func @sm.tmem_relinquish() {
  "sm.tmem_relinquish"() {cta_group = 2 : i64} : () -> ()
  return
}

func.func @sm.tmem_store(%address: i32, %words: vector<8xi32>) {
  "sm.tmem_store"(%address, %words) {offset = 0 : i64, shape = "32x32b"} : (i32, vector<8xi32>) -> ()
  return
}

func.func @sm.tmem_store_wait() {
  "sm.tmem_store_wait"() : () -> ()
  return
}

func.func @sm.tmem_wait(%words: vector<32xi32>) {
  %tmem_wait = "sm.tmem_wait"(%words) : (vector<32xi32>) -> vector<32xf32>
  return
}

func.func @sm.try_cancel(%to: !llvm.ptr<3>, %barrier: !llvm.ptr<3>) {
  "sm.try_cancel"(%to, %barrier) {multicast = true} : (!llvm.ptr<3>, !llvm.ptr<3>) -> ()
  return
}

func.func @sm.turns(%full: !sm.mbarriers<1 : i64>, %empty: !sm.mbarriers<1 : i64>) {
  %turns = "sm.turns"(%full, %empty) : (!sm.mbarriers<1 : i64>, !sm.mbarriers<1 : i64>) -> !pipe.ring<1 : i64, [!pipe.turn]>
  return
}

func.func @sm.wait_barrier(%barrier: !llvm.ptr<3>, %parity: i32) {
  "sm.wait_barrier"(%barrier, %parity) {scope = "cta"} : (!llvm.ptr<3>, i32) -> ()
  return
}

func.func @sm.warpgroup_position() {
  %warpgroup_position = "sm.warpgroup_position"() {label = "ahead.fill", stages = 2 : i64} : () -> !sm.place_in_ring
  return
}

func.func @sm.warps(%arg0: !pipe.ring<2 : i64, [!pipe.response]>) {
  "sm.warps"() ({
    %team:3 = "sm.team"() : () -> (i32, i32, i1)
    "sm.run"() ({
      "pipe.claim"(%arg0) : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
    }) {by = "lane"} : () -> ()
    "sm.converge"() : () -> ()
  }) {agent = "scheduler", barrier = 4 : i64, first = 6 : i64, warps = 1 : i64} : () -> ()
  return
}

func.func @sm.weight_columns() {
  %tensor_memory = "sm.tensor_memory"() {columns = 512 : i64, offset = 180288 : i64} : () -> !sm.allocation
  "sm.weight_columns"(%tensor_memory) {each = 64 : i64, first = 256 : i64} : (!sm.allocation) -> ()
  return
}

func.func @sm.wgmma(%d: !llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>, %a: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, %accumulate: i1) {
  %wgmma = "sm.wgmma"(%d, %a, %b, %accumulate) {a_major = "k", a_offset = 0 : i64, a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", first = 0 : i64, k = 16 : i64, m = 64 : i64, n = 128 : i64} : (!llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, i1) -> !llvm.struct<"f32x64", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
  return
}

func.func @sm.wgmma_commit() {
  "sm.wgmma_commit"() : () -> ()
  return
}

func.func @sm.wgmma_fence() {
  "sm.wgmma_fence"() : () -> ()
  return
}

func.func @sm.wgmma_of_registers(%d: !llvm.struct<"f32x80", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>, %a: vector<4xi32>, %b: !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, %accumulate: i1) {
  %wgmma_of_registers = "sm.wgmma_of_registers"(%d, %a, %b, %accumulate) {a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", k = 16 : i64, m = 64 : i64, n = 160 : i64} : (!llvm.struct<"f32x80", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>, vector<4xi32>, !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>, i1) -> !llvm.struct<"f32x80", (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
  return
}

func.func @sm.wgmma_wait() {
  "sm.wgmma_wait"() {pending = 1 : i64} : () -> ()
  return
}

func.func @sm.widen(%codes: i16) {
  %widen = "sm.widen"(%codes) {dtype = "e4m3"} : (i16) -> vector<2xf16>
  return
}

func.func @sm.write_tally(%tally: !sm.number, %value: i32) {
  "sm.write_tally"(%tally, %value) : (!sm.number, i32) -> ()
  return
}

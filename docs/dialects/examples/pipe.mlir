// Examples of ops of `pipe`, written by `python test/fuzz/op_examples.py`.

func.func @pipe.acquire(%ring: !pipe.ring<1 : i64, [!pipe.turn]>) {
  %slot = "pipe.acquire"(%ring) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> !pipe.slot<[!pipe.turn]>
  return
}

func.func @pipe.claim(%ring: !pipe.ring<2 : i64, [!pipe.response]>) {
  "pipe.claim"(%ring) : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
  return
}

func.func @pipe.commit(%ring: !pipe.ring<1 : i64, [!pipe.turn]>) {
  "pipe.commit"(%ring) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> ()
  return
}

func.func @pipe.create() {
  %ring = "pipe.create"() : () -> !pipe.ring<1 : i64, [!pipe.turn]>
  return
}

func.func @pipe.drain(%ring: !pipe.ring<8 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) {
  "pipe.drain"(%ring) {slots = 2 : i64} : (!pipe.ring<8 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<64x64xbf16>, "k", "128B">]>) -> ()
  return
}

func.func @pipe.for_each_claim(%ring: !pipe.ring<2 : i64, [!pipe.response]>, %arg1: !pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>, %arg2: !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, %arg3: !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>) {
  "pipe.for_each_claim"(%ring) ({
  ^bb0(%i: index, %j: index):
    %acc_slot = "pipe.wait"(%arg1) : (!pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>) -> !pipe.slot<[!tile.acc<tensor<128x256xf32>>]>
    %acc = "pipe.tile"(%acc_slot) {index = 0 : i64} : (!pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) -> !tile.acc<tensor<128x256xf32>>
    "tile.staged_store"(%acc, %arg2, %arg3, %i, %j) ({
    ^bb0(%x: f32):
      %0 = arith.truncf %x : f32 to bf16
      "tile.yield"(%0) : (bf16) -> ()
    }) {write = "matrices"} : (!tile.acc<tensor<128x256xf32>>, !tile.map<bf16, [512, 512], [1024], [32, 128], "64B">, !pipe.ring<2 : i64, [!tile.smem<tensor<128x32xbf16>, "k", "64B">]>, index, index) -> ()
    "pipe.release"(%arg1) : (!pipe.ring<2 : i64, [!tile.acc<tensor<128x256xf32>>]>) -> ()
  }) {group = 8 : i64, order = "grouped", tiles = [4, 2]} : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
  return
}

func.func @pipe.for_each_turn(%arg0: !pipe.ring<1 : i64, [!pipe.turn]>, %arg1: !pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>, %arg2: !tile.acc<tensor<128x128xf32>>, %arg3: i1, %arg4: index, %arg5: index, %arg6: index) {
  "pipe.for_each_turn"() ({
  ^bb0(%i: index, %j: index):
    %slot = "pipe.acquire"(%arg0) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> !pipe.slot<[!pipe.turn]>
    %slot_0 = "pipe.wait"(%arg1) : (!pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>
    %a_tile = "pipe.tile"(%slot_0) {index = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "128B">
    %b_tile = "pipe.tile"(%slot_0) {index = 1 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "128B">
    "tile.mma"(%arg2, %a_tile, %b_tile, %arg3) : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, i1) -> ()
    %c8 = arith.constant 8 : index
    scf.for %k = %arg4 to %c8 step %arg5 {
      %adds = arith.cmpi ne, %k, %arg6 : index
      %slot_1 = "pipe.wait"(%arg1) : (!pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>
      %a_tile_2 = "pipe.tile"(%slot_1) {index = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "128B">
      %b_tile_3 = "pipe.tile"(%slot_1) {index = 1 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> !tile.smem<tensor<128x64xbf16>, "k", "128B">
      "tile.mma"(%arg2, %a_tile_2, %b_tile_3, %adds) : (!tile.acc<tensor<128x128xf32>>, !tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">, i1) -> ()
      "tile.await_mma"() {pending = 1 : i64} : () -> ()
      "pipe.release"(%arg1) : (!pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> ()
    }
    "pipe.commit"(%arg0) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> ()
    "tile.await_mma"() {pending = 0 : i64} : () -> ()
    "pipe.release"(%arg1) : (!pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> ()
  }) {group = 8 : i64, order = "grouped", tiles = [32, 32], turn = 0 : i64, turns = 2 : i64} : () -> ()
  return
}

func.func @pipe.other_tile() {
  "pipe.for_each_turn"() ({
  ^bb0(%i: index, %j: index):
    %other_tile:2 = "pipe.other_tile"() {ahead = 1 : i64} : () -> (index, index)
  }) {group = 8 : i64, order = "grouped", tiles = [16, 4], turn = 0 : i64, turns = 2 : i64} : () -> ()
  return
}

func.func @pipe.parity(%slot: !pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) {
  %parity = "pipe.parity"(%slot) : (!pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) -> i32
  return
}

func.func @pipe.release(%ring: !pipe.ring<1 : i64, [!pipe.turn]>) {
  "pipe.release"(%ring) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> ()
  return
}

func.func @pipe.role(%arg0: !pipe.ring<2 : i64, [!pipe.response]>) {
  "pipe.role"() ({
    "pipe.claim"(%arg0) : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
  }) {agent = "scheduler", warps = 1 : i64} : () -> ()
  return
}

func.func @pipe.set_registers() {
  "pipe.set_registers"() {count = 40 : i64} : () -> ()
  return
}

func.func @pipe.skip(%ring: !pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) {
  "pipe.skip"(%ring) {slots = 8 : i64} : (!pipe.ring<6 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "128B">, !tile.smem<tensor<128x64xbf16>, "k", "128B">]>) -> ()
  return
}

func.func @pipe.tile(%slot: !pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) {
  %acc = "pipe.tile"(%slot) {index = 0 : i64} : (!pipe.slot<[!tile.acc<tensor<128x256xf32>>]>) -> !tile.acc<tensor<128x256xf32>>
  return
}

func.func @pipe.wait(%ring: !pipe.ring<1 : i64, [!pipe.turn]>) {
  %slot = "pipe.wait"(%ring) : (!pipe.ring<1 : i64, [!pipe.turn]>) -> !pipe.slot<[!pipe.turn]>
  return
}

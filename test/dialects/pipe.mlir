// Every op and type of `pipe` prints what it parses.
// RUN: tilewright opt %s --passes 'swizzle-selection{force=none}' | tilewright opt - --passes 'swizzle-selection{force=none}' | filecheck %s

// CHECK:      %[[TILES:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">]>
// CHECK:      %[[ACCS:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.acc<tensor<128x128xf32>>]>
// CHECK:      %[[CLAIMS:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!pipe.response]>
// CHECK:      %[[TURNS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!pipe.turn]>
// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 40 : i64} : () -> ()
// CHECK-NEXT:   "pipe.for_each_claim"(%[[CLAIMS]]) ({
// CHECK-NEXT:   ^bb0(%{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:     %[[S:.*]] = "pipe.acquire"(%[[TILES]]) : ({{.*}}) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">]>
// CHECK-NEXT:     "pipe.tile"(%[[S]]) {index = 0 : i64} : ({{.*}}) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
// CHECK-NEXT:     "pipe.commit"(%[[TILES]])
// CHECK-NEXT:   }) {group = 4 : i64, order = "m", tiles = [1, 1]}
// CHECK-NEXT: }) {agent = "load", warps = 2 : i64} : () -> ()
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   %[[A:.*]] = "pipe.wait"(%[[ACCS]]) : ({{.*}}) -> !pipe.slot<[!tile.acc<tensor<128x128xf32>>]>
// CHECK-NEXT:   "pipe.tile"(%[[A]]) {index = 0 : i64}
// CHECK-NEXT:   "pipe.release"(%[[ACCS]])
// CHECK-NEXT: }) {agent = "epilogue", warps = 4 : i64}
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.claim"(%[[CLAIMS]]) : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
// CHECK-NEXT: }) {agent = "scheduler", warps = 1 : i64}
// CHECK-NEXT: "pipe.role"() ({
// CHECK-NEXT:   "pipe.for_each_turn"() ({
// CHECK-NEXT:   ^bb0(%{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:     "pipe.wait"(%[[TURNS]]) : ({{.*}}) -> !pipe.slot<[!pipe.turn]>
// CHECK-NEXT:     "pipe.skip"(%[[TILES]]) {slots = 7 : i64}
// CHECK-NEXT:   }) {group = 4 : i64, order = "m", tiles = [1, 1], turn = 1 : i64, turns = 2 : i64}
// CHECK-NEXT: }) {agent = "pong", warps = 4 : i64}
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x128xf32>>
!tiles = !pipe.ring<3 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">]>
!accs = !pipe.ring<2 : i64, [!tile.acc<tensor<128x128xf32>>]>
!claims = !pipe.ring<2 : i64, [!pipe.response]>
!turns = !pipe.ring<1 : i64, [!pipe.turn]>
"tile.kernel"() ({
  %tiles = "pipe.create"() : () -> !tiles
  %accs = "pipe.create"() : () -> !accs
  %claims = "pipe.create"() : () -> !claims
  %turns = "pipe.create"() : () -> !turns
  "pipe.role"() ({
    "pipe.set_registers"() {count = 40 : i64} : () -> ()
    "pipe.for_each_claim"(%claims) ({
    ^bb0(%i: index, %j: index):
      %slot = "pipe.acquire"(%tiles) : (!tiles) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">]>
      %t = "pipe.tile"(%slot) {index = 0 : i64} : (!pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">]>) -> !ta
      "pipe.commit"(%tiles) : (!tiles) -> ()
    }) {group = 4 : i64, order = "m", tiles = [1, 1]} : (!claims) -> ()
  }) {agent = "load", warps = 2 : i64} : () -> ()
  "pipe.role"() ({
    %slot = "pipe.wait"(%accs) : (!accs) -> !pipe.slot<[!tile.acc<tensor<128x128xf32>>]>
    %a = "pipe.tile"(%slot) {index = 0 : i64} : (!pipe.slot<[!tile.acc<tensor<128x128xf32>>]>) -> !acc
    "pipe.release"(%accs) : (!accs) -> ()
  }) {agent = "epilogue", warps = 4 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.claim"(%claims) : (!claims) -> ()
  }) {agent = "scheduler", warps = 1 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.for_each_turn"() ({
    ^bb0(%i: index, %j: index):
      %turn = "pipe.wait"(%turns) : (!turns) -> !pipe.slot<[!pipe.turn]>
      "pipe.skip"(%tiles) {slots = 7 : i64} : (!tiles) -> ()
    }) {group = 4 : i64, order = "m", tiles = [1, 1], turn = 1 : i64, turns = 2 : i64} : () -> ()
  }) {agent = "pong", warps = 4 : i64} : () -> ()
}) {arg_names = [], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f", threads = 352 : i64} : () -> ()

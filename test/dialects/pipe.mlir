// Every op and type of `pipe` prints what it parses.
// RUN: tilewright opt %s | tilewright opt - | filecheck %s

// CHECK:      %[[TILES:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">]>
// CHECK:      %[[ACCS:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.acc<tensor<128x128xf32>>]>
// CHECK:      %[[CLAIMS:.*]] = "pipe.create"() : () -> !pipe.ring<2 : i64, [!pipe.response]>
// CHECK:      "pipe.role"() ({
// CHECK-NEXT:   "pipe.set_registers"() {count = 40 : i64} : () -> ()
// CHECK-NEXT:   "pipe.for_each_claim"(%[[CLAIMS]]) ({
// CHECK-NEXT:   ^bb0(%{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:     %[[S:.*]] = "pipe.acquire"(%[[TILES]]) : ({{.*}}) -> !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">]>
// CHECK-NEXT:     "pipe.tile"(%[[S]]) {index = 0 : i64} : ({{.*}}) -> !tile.smem<tensor<128x64xbf16>, "k", "none">
// CHECK-NEXT:     "tile.copy"
// CHECK-NEXT:     "pipe.commit"(%[[TILES]])
// CHECK-NEXT:   }) {group = 8 : i64, order = "m", tiles = [1, 1]}
// CHECK-NEXT: }) {agent = "load", warps = 2 : i64} : () -> ()
// CHECK:        "pipe.wait"(%[[TILES]])
// CHECK:        "pipe.release"(%[[TILES]])
// CHECK:        %[[A:.*]] = "pipe.wait"(%[[ACCS]]) : ({{.*}}) -> !pipe.slot<[!tile.acc<tensor<128x128xf32>>]>
// CHECK-NEXT:   "pipe.tile"(%[[A]]) {index = 0 : i64}
// CHECK-NEXT:   "pipe.release"(%[[ACCS]])
// CHECK:      "pipe.claim"(%[[CLAIMS]]) : (!pipe.ring<2 : i64, [!pipe.response]>) -> ()
// CHECK-NEXT: }) {agent = "scheduler", warps = 1 : i64}
// CHECK:      %[[SHARED:.*]] = "pipe.create"() : () -> !pipe.ring<3 : i64,
// CHECK:      %[[TURNS:.*]] = "pipe.create"() : () -> !pipe.ring<1 : i64, [!pipe.turn]>
// CHECK:        "pipe.for_each_turn"() ({
// CHECK:        "pipe.for_each_turn"() ({
// CHECK-NEXT:   ^bb0(%{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:     "pipe.skip"(%[[SHARED]]) {slots = 1 : i64}
// CHECK-NEXT:     "pipe.wait"(%[[TURNS]]) : ({{.*}}) -> !pipe.slot<[!pipe.turn]>
// CHECK:        }) {group = 8 : i64, order = "m", tiles = [1, 1], turn = 1 : i64, turns = 2 : i64}
// CHECK-NEXT: }) {agent = "pong", warps = 4 : i64}
!view = memref<128x64xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x128xf32>>
!tiles = !pipe.ring<3 : i64, [!tile.smem<tensor<128x64xbf16>, "k", "none">]>
!slot = !pipe.slot<[!tile.smem<tensor<128x64xbf16>, "k", "none">]>
!accs = !pipe.ring<2 : i64, [!tile.acc<tensor<128x128xf32>>]>
!sums = !pipe.slot<[!tile.acc<tensor<128x128xf32>>]>
!claims = !pipe.ring<2 : i64, [!pipe.response]>
!turns = !pipe.ring<1 : i64, [!pipe.turn]>
!turn = !pipe.slot<[!pipe.turn]>
"tile.kernel"() ({
^bb0(%v: !view):
  %tiles = "pipe.create"() : () -> !tiles
  %accs = "pipe.create"() : () -> !accs
  %claims = "pipe.create"() : () -> !claims
  %false = arith.constant false
  "pipe.role"() ({
    "pipe.set_registers"() {count = 40 : i64} : () -> ()
    "pipe.for_each_claim"(%claims) ({
    ^bb0(%i: index, %j: index):
      %s = "pipe.acquire"(%tiles) : (!tiles) -> !slot
      %t = "pipe.tile"(%s) {index = 0 : i64} : (!slot) -> !ta
      "tile.copy"(%v, %t, %i, %j) : (!view, !ta, index, index) -> ()
      "pipe.commit"(%tiles) : (!tiles) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1]} : (!claims) -> ()
  }) {agent = "load", warps = 2 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.for_each_claim"(%claims) ({
    ^bb0(%i: index, %j: index):
      %s = "pipe.acquire"(%accs) : (!accs) -> !sums
      %acc = "pipe.tile"(%s) {index = 0 : i64} : (!sums) -> !acc
      %r = "pipe.wait"(%tiles) : (!tiles) -> !slot
      %t = "pipe.tile"(%r) {index = 0 : i64} : (!slot) -> !ta
      "tile.mma"(%acc, %t, %t, %false) : (!acc, !ta, !ta, i1) -> ()
      "pipe.release"(%tiles) : (!tiles) -> ()
      "pipe.commit"(%accs) : (!accs) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1]} : (!claims) -> ()
  }) {agent = "mma", warps = 1 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.for_each_claim"(%claims) ({
    ^bb0(%i: index, %j: index):
      %s = "pipe.wait"(%accs) : (!accs) -> !sums
      %acc = "pipe.tile"(%s) {index = 0 : i64} : (!sums) -> !acc
      "pipe.release"(%accs) : (!accs) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1]} : (!claims) -> ()
  }) {agent = "epilogue", warps = 4 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.claim"(%claims) : (!claims) -> ()
  }) {agent = "scheduler", warps = 1 : i64} : () -> ()
}) {arg_names = ["v"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f", threads = 256 : i64} : () -> ()
"tile.kernel"() ({
^bb0(%v: !view):
  %tiles = "pipe.create"() : () -> !tiles
  %turns = "pipe.create"() : () -> !turns
  "pipe.role"() ({
    "tile.for_each_tile"() ({
    ^bb0(%i: index, %j: index):
      %s = "pipe.acquire"(%tiles) : (!tiles) -> !slot
      %t = "pipe.tile"(%s) {index = 0 : i64} : (!slot) -> !ta
      "tile.copy"(%v, %t, %i, %j) : (!view, !ta, index, index) -> ()
      "pipe.commit"(%tiles) : (!tiles) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1]} : () -> ()
  }) {agent = "load", warps = 4 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.for_each_turn"() ({
    ^bb0(%i: index, %j: index):
      %turn = "pipe.acquire"(%turns) : (!turns) -> !turn
      %s = "pipe.wait"(%tiles) : (!tiles) -> !slot
      "pipe.commit"(%turns) : (!turns) -> ()
      "pipe.release"(%tiles) : (!tiles) -> ()
      "pipe.skip"(%tiles) {slots = 1 : i64} : (!tiles) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1], turn = 0 : i64, turns = 2 : i64} : () -> ()
  }) {agent = "ping", warps = 4 : i64} : () -> ()
  "pipe.role"() ({
    "pipe.for_each_turn"() ({
    ^bb0(%i: index, %j: index):
      "pipe.skip"(%tiles) {slots = 1 : i64} : (!tiles) -> ()
      %turn = "pipe.wait"(%turns) : (!turns) -> !turn
      %s = "pipe.wait"(%tiles) : (!tiles) -> !slot
      "pipe.release"(%turns) : (!turns) -> ()
      "pipe.release"(%tiles) : (!tiles) -> ()
    }) {group = 8 : i64, order = "m", tiles = [1, 1], turn = 1 : i64, turns = 2 : i64} : () -> ()
  }) {agent = "pong", warps = 4 : i64} : () -> ()
}) {arg_names = ["v"], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "g", threads = 384 : i64} : () -> ()

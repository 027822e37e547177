// A slot is empty once all have read it that got it by multicast: the CTAs in line along an axis hear of it
// by one commit, or by an arrival of each warp in each of them. A load's mask names those that need its tile.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{shape=2x2 pair=false},pipelining{stages=2},warp-specialization,pipes-to-barriers' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,clustering{shape=2x1},pipelining{stages=2},warp-specialization,pipes-to-barriers' | filecheck %s --check-prefix HOPPER

// CHECK:     "sm.barriers"() {arrivals = 3 : i64, label = "operands.empty"
// CHECK:     %[[ALONG_N:.*]] = "sm.cta_mask"() {along = ["n"], whose = "peers"}
// CHECK-NEXT: "tile.multicast_boxes"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ALONG_N]], %{{.*}}, %{{.*}}) {axis = "n"
// CHECK:     %[[ALONG_M:.*]] = "sm.cta_mask"() {along = ["m"], whose = "peers"}
// CHECK-NEXT: "tile.multicast_boxes"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ALONG_M]], %{{.*}}, %{{.*}}) {axis = "m"
// CHECK:     "tile.mma"
// CHECK:     %[[MASK:.*]] = "sm.cta_mask"() {along = ["m", "n"], whose = "cta"}
// CHECK-NEXT: "sm.commit"(%{{.*}}, %[[MASK]]) {cta_group = 1 : i64

// HOPPER:    "sm.position"() {label = "operands.release"
// HOPPER:    "sm.position"() {label = "operands.read"
// HOPPER:    "tile.accumulator"
// HOPPER:    "sm.prologue"
// HOPPER:    "sm.wgmma_wait"
// HOPPER:    %[[MASK:.*]] = "sm.cta_mask"() {along = ["m"], whose = "cta"}
// HOPPER-NEXT: "sm.each_rank"(%[[MASK]])
// HOPPER-NEXT: ^bb0(%[[RANK:.*]]: i32):
// HOPPER-NEXT: %[[REMOTE:.*]] = "sm.mapa"(%{{.*}}, %[[RANK]])
// HOPPER-NEXT: "sm.arrive"(%[[REMOTE]]) {scope = "cta"}
// HOPPER-NEXT: }) {by = "warpgroup"}
// HOPPER-NEXT: "sm.converge"
!a = memref<256x256xbf16, 1>
!b = memref<256x256xbf16, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "k", "none">
!acc = !tile.acc<tensor<128x64xf32>>
"tile.kernel"() ({
^bb0(%a: !a, %b: !b, %c: !c):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %acc = "tile.accumulator"() : () -> !acc
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  scf.for %k = %zero to %steps step %one {
    %ta = "tile.load"(%a, %i, %k) : (!a, index, index) -> !ta
    %tb = "tile.load"(%b, %j, %k) : (!b, index, index) -> !tb
    %more = arith.cmpi ne, %k, %zero : index
    "tile.mma"(%acc, %ta, %tb, %more) : (!acc, !ta, !tb, i1) -> ()
  }
  "tile.store"(%acc, %c, %i, %j) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) : (!acc, !c, index, index) -> ()
}) {arg_names = ["a", "b", "c"], cluster = [1, 1, 1], grid = [2, 4, 1], sym_name = "f", threads = 128 : i64} : () -> ()

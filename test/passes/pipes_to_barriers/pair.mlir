// The leader CTA of a pair announces the bytes of both, and its MMAs are committed to the barriers of both.
// Each warp that has read the sums arrives in the leader. At the end a CTA waits until each of its slots is empty.
// Behind the prologue, each CTA of a cluster knows its place in it. Both are there before they allocate, and
// the warp that loads does not wait for what they get.
// RUN: tilewright opt %s --passes 'tma-insertion,epilogue-staging,clustering{pair=true},warp-specialization,pipes-to-barriers' | filecheck %s

// CHECK:     "sm.prefetch_tensor_map"
// CHECK:     %{{.*}}:4 = "sm.cta_place"() : () -> (i32, i32, i32, i1)
// CHECK-NEXT: "sm.cluster_barrier"() {releases = false}
// CHECK:     "sm.tmem_alloc"(%{{.*}}) {columns = 64 : i64, cta_group = 2 : i64}
// CHECK:     "sm.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: "sm.tmem_base"(%{{.*}}) {apart = 16 : i64, barrier = 4 : i64, threads = 160 : i64}
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK:     "sm.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: "sm.converge"
// CHECK-NEXT: "sm.run"
// CHECK-NEXT: %[[RANK:.*]] = "sm.leader_rank"
// CHECK-NEXT: %[[REMOTE:.*]] = "sm.mapa"(%{{.*}}, %[[RANK]])
// CHECK-NEXT: "sm.arrive"(%[[REMOTE]]) {scope = "cta"}
// CHECK-NEXT: }) {by = "warp"}
// CHECK-NEXT: "sm.converge"
// CHECK:     agent = "epilogue"
// CHECK:     "sm.wait_barrier"(%{{.*}}) {scope = "cta"}
// CHECK:     "sm.run"
// CHECK-NEXT: "sm.arrive_expect_tx"(%{{.*}}) {bytes = 40960 : i64}
// CHECK-NEXT: }) {by = "issuer"}
// CHECK:     "sm.launch_dependents"
// CHECK-NEXT: "sm.run"
// CHECK-NEXT: arith.constant 0 : i32
// CHECK-NEXT: %[[SLOTS:.*]] = arith.constant 1 : i32
// CHECK-NEXT: arith.constant 1 : i32
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[SLOTS]] step
// CHECK:     "sm.wait_barrier"
// CHECK-NEXT: "sm.advance_position"
// CHECK-NEXT: }
// CHECK-NEXT: }) {by = "lane"}
// CHECK:     agent = "load"
// CHECK:     "tile.pair_mma"
// CHECK:     %[[MASK:.*]] = "sm.cta_mask"() {along = [], whose = "pair"}
// CHECK-NEXT: "sm.commit"(%{{.*}}, %[[MASK]]) {cta_group = 2 : i64
// CHECK:     "sm.cluster_barrier"
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: "sm.first_warp"
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

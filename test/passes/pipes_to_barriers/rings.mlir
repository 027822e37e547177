// Who fills and who reads go round the ring by positions: they wait for a slot by its index and parity,
// the one until it is empty (the parity before), the other until it is full. TMA's bytes are announced.
// Before all of it the barriers are initialised and tensor memory is allocated; at the end it goes back.
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining{stages=2},warp-specialization,pipes-to-barriers' | filecheck %s

// CHECK-NOT: pipe.{{(acquire|commit|wait|release|drain)}}
// CHECK:     %[[FULL:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "operands.full"
// CHECK:     %[[EMPTY:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "operands.empty"
// CHECK:     %[[FILL:.*]] = "sm.position"() {label = "operands.fill", stages = 2 : i64}
// CHECK-NEXT: %[[READ:.*]] = "sm.position"() {label = "operands.read", stages = 2 : i64}
// CHECK:     "sm.prologue"() ({
// CHECK-NEXT: "sm.run"() ({
// CHECK-NEXT: %[[SLOT:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[FULL]], %[[SLOT]])
// CHECK-NEXT: "sm.barrier_init"(%[[BARRIER]]) {count = 1 : i64}
// CHECK-NEXT: arith.constant 0 : i32
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[EMPTY]],
// CHECK-NEXT: "sm.barrier_init"(%[[BARRIER]]) {count = 1 : i64}
// CHECK-NEXT: arith.constant 1 : i32
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[FULL]],
// CHECK:     "sm.fence"() {kind = "mbarrier_init"}
// CHECK-NEXT: "sm.prefetch_tensor_map"
// CHECK-NEXT: "sm.prefetch_tensor_map"
// CHECK-NEXT: }) {by = "lane"}
// CHECK-NEXT: "sm.converge"
// CHECK-NEXT: })
// CHECK-NEXT: "sm.cta_barrier"
// CHECK-NEXT: "sm.first_warp"() ({
// CHECK-NEXT: %[[BYTE:.*]] = arith.constant {{[0-9]+}} : i32
// CHECK-NEXT: %[[TO:.*]] = "sm.shared_address"(%[[BYTE]])
// CHECK-NEXT: "sm.tmem_alloc"(%[[TO]]) {columns = 64 : i64, cta_group = 1 : i64}
// CHECK-NEXT: "sm.tmem_relinquish"
// CHECK-NEXT: })
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: %[[BASE:.*]] = "sm.tmem_base"(%{{.*}}) {apart = 16 : i64, barrier = 4 : i64, threads = 160 : i64}
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: "sm.await_grids"
// CHECK:     agent = "epilogue"
// CHECK:     %[[AT:.*]]:2 = "sm.read_position"(%[[FILL]])
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[EMPTY]], %[[AT]]#0)
// CHECK:     %[[BEFORE:.*]] = arith.xori %[[AT]]#1, %c1_i32
// CHECK-NEXT: "sm.wait_barrier"(%[[BARRIER]], %[[BEFORE]]) {scope = "cta"}
// CHECK-NEXT: "sm.slot"(%{{.*}}, %[[AT]]#0)
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[FULL]], %[[AT]]#0)
// CHECK-NEXT: "sm.arrive_expect_tx"(%[[BARRIER]]) {bytes = 24576 : i64}
// CHECK:     "tile.load_boxes"(%{{.*}}, %{{.*}}, %[[BARRIER]],
// CHECK:     "sm.advance_position"(%[[FILL]]) {slots = 1 : i64}
// CHECK:     agent = "load"
// CHECK:     %[[AT:.*]]:2 = "sm.read_position"(%[[READ]])
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[FULL]], %[[AT]]#0)
// CHECK-NEXT: "sm.wait_barrier"(%[[BARRIER]], %[[AT]]#1) {scope = "cta"}
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: "sm.slot"(%{{.*}}, %[[AT]]#0)
// CHECK:     "tile.mma"
// CHECK-NEXT: %[[AT:.*]]:2 = "sm.read_position"(%[[READ]])
// CHECK-NEXT: %[[BARRIER:.*]] = "sm.barrier"(%[[EMPTY]], %[[AT]]#0)
// CHECK-NEXT: "sm.commit"(%[[BARRIER]]) {cta_group = 1 : i64
// CHECK-NEXT: "sm.advance_position"(%[[READ]]) {slots = 1 : i64}
// CHECK-NOT: pipe.{{(acquire|commit|wait|release|drain)}}
// CHECK:     "sm.cta_barrier"
// CHECK-NEXT: "sm.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: "sm.first_warp"() ({
// CHECK-NEXT: "sm.tmem_dealloc"(%[[BASE]]) {columns = 64 : i64, cta_group = 1 : i64}
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

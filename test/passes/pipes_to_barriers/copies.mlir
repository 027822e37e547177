// Threads that copy arrive on a slot once later ones are under way: a tally counts those that are not full
// yet, and behind the loop each warp arrives on the rest.
// RUN: tilewright opt %s --passes 'tma-insertion,pipelining{stages=4},warp-specialization,pipes-to-barriers' | filecheck %s

// CHECK:     %[[ARRIVE:.*]] = "sm.position"() {label = "operands.arrive", stages = 4 : i64}
// CHECK-NEXT: %[[PENDING:.*]] = "sm.tally"() {label = "operands.pending"}
// CHECK:     "tile.copy"
// CHECK:     "sm.cp_async_commit"
// CHECK-NEXT: %[[COUNT:.*]] = "sm.read_tally"(%[[PENDING]])
// CHECK:     %[[BEHIND:.*]] = arith.cmpi eq, %[[COUNT]], %c2_i32
// CHECK-NEXT: scf.if %[[BEHIND]] {
// CHECK-NEXT: "sm.cp_async_wait"() {pending = 2 : i64}
// CHECK-NEXT: "sm.fence"() {kind = "async_shared"}
// CHECK-NEXT: "sm.converge"
// CHECK:     %[[AT:.*]]:2 = "sm.read_position"(%[[ARRIVE]])
// CHECK-NEXT: %[[FULL:.*]] = "sm.barrier"(%{{.*}}, %[[AT]]#0)
// CHECK-NEXT: "sm.run"
// CHECK-NEXT: "sm.arrive"(%[[FULL]]) {scope = "cta"}
// CHECK-NEXT: }) {by = "warp"}
// CHECK:     "sm.write_tally"(%[[PENDING]]
// CHECK:     "sm.cp_async_wait"() {pending = 0 : i64}
// CHECK-COUNT-2: scf.if
// CHECK:     "sm.write_tally"(%[[PENDING]], %c0_i32
!a = memref<252x252xbf16, 1>
!b = memref<252x252xbf16, 1>
!c = memref<252x252xbf16, 1>
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

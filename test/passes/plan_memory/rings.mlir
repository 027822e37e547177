// A ring's tiles lie slot behind slot, then its barriers: a phase is full with the one arrival of who
// tells the bytes, empty with the commit; an accumulator is handed back by four warps. Columns are
// those of an allocation of a power of two, whose address lies last.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,pipelining{stages=3},warp-specialization,plan-memory' | filecheck %s

// CHECK-NOT: "pipe.create"
// CHECK:     "sm.shared_memory"() {bytes = 73796 : i64}
// CHECK:     %[[ALLOCATION:.*]] = "sm.tensor_memory"() {columns = 64 : i64, offset = 73792 : i64}
// CHECK:     %[[TILES:.*]] = "sm.slot_memory"() {offsets = [0, 49152], slots = 3 : i64}
// CHECK:     %[[FULL:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "operands.full", offset = 73728 : i64, slots = 3 : i64}
// CHECK:     %[[EMPTY:.*]] = "sm.barriers"() {arrivals = 1 : i64, label = "operands.empty", offset = 73752 : i64, slots = 3 : i64}
// CHECK:     %[[RING:.*]] = "sm.ring"(%[[FULL]], %[[EMPTY]], %[[TILES]]) {under_way = 0 : i64}
// CHECK:     %[[COLUMNS:.*]] = "sm.columns"(%[[ALLOCATION]]) {each = 64 : i64, first = 0 : i64, slots = 1 : i64}
// CHECK:     "sm.barriers"() {arrivals = 1 : i64, label = "accumulator.full"
// CHECK:     "sm.barriers"() {arrivals = 4 : i64, label = "accumulator.empty"
// CHECK:     "sm.ring"(%{{.*}}, %{{.*}}, %[[COLUMNS]])
// CHECK:     "pipe.acquire"(%[[RING]])
// CHECK-NOT: "pipe.create"
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

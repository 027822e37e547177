// Where threads copy an operand the load role has four warps; the slot is still all that it fills.
// RUN: tilewright opt %s --passes tma-insertion,warp-specialization 2>&1 | filecheck %s

// CHECK:      remark: tma-insertion: a is copied by threads
// CHECK-NOT:  "tile.load"
// CHECK:      agent = "epilogue", warps = 4 : i64
// CHECK:      "pipe.role"() ({
// CHECK:        %[[SLOT:.*]] = "pipe.acquire"(%{{.*}})
// CHECK-NEXT:   %[[TA:.*]] = "pipe.tile"(%[[SLOT]]) {index = 0 : i64}
// CHECK-NEXT:   %[[TB:.*]] = "pipe.tile"(%[[SLOT]]) {index = 1 : i64}
// CHECK-NEXT:   "tile.copy"(%{{.*}}, %[[TA]],
// CHECK-NEXT:   "tile.tma_load"(%{{.*}}, %[[TB]],
// CHECK-NEXT:   "pipe.commit"
// CHECK:      }) {agent = "load", warps = 4 : i64}
// CHECK:      agent = "mma", warps = 1 : i64
// CHECK:      threads = 288 : i64
!a = memref<256x204xbf16, 1>
!b = memref<256x204xbf16, strided<[1, 256]>, 1>
!c = memref<256x256xbf16, 1>
!ta = !tile.smem<tensor<128x64xbf16>, "k", "none">
!tb = !tile.smem<tensor<64x64xbf16>, "mn", "none">
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

// On a Hilbert curve a turn is looked up in a table, once a tile in every role that needs its place.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,warp-specialization,persistence{order=hilbert ctas=3},lower-to-nvvm' | filecheck %s

// CHECK:     llvm.mlir.global internal constant @hilbert_curve(dense<[0, 1, 65537, 65536, 131072, 131073, 196609, 196608]> : tensor<8xi32>) {addr_space = 1 : i32
// CHECK:     nvvm.reqntid = array<i32: 192, 1, 1>
// CHECK:     llvm.mlir.addressof @hilbert_curve : !llvm.ptr<1>
// CHECK:     %[[PLACE:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i32
// CHECK:     llvm.urem %[[PLACE]], %
// CHECK:     llvm.udiv %[[PLACE]], %
// CHECK:     nvvm.tcgen05.ld
// CHECK:     llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i32
// CHECK:     nvvm.cp.async.bulk.tensor.shared.cluster.global
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

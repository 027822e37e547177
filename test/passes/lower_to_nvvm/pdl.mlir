// For dependent launch the kernel waits before it touches global memory; grids after it may start when
// its CTAs end, or once their loads are issued. It waits unless told otherwise, where chips do by default.
// RUN: tilewright opt %s --passes 'tma-insertion,lower-to-nvvm{pdl=early}' | filecheck %s --check-prefix EARLY
// RUN: tilewright opt %s --passes 'tma-insertion,lower-to-nvvm' --target sm_90a | filecheck %s --check-prefix WAIT
// RUN: tilewright opt %s --passes 'tma-insertion,lower-to-nvvm' | filecheck %s --check-prefix WAIT
// RUN: tilewright opt %s --passes 'tma-insertion,lower-to-nvvm{pdl=false}' | filecheck %s --check-prefix PLAIN
// RUN: tilewright opt %s --passes 'tma-insertion,lower-to-nvvm{pdl=false}' --target sm_90a | filecheck %s --check-prefix PLAIN
// RUN: tilewright opt %s --passes 'tma-insertion,warp-specialization,lower-to-nvvm{pdl=early}' | filecheck %s --check-prefix ROLES

// EARLY:     nvvm.tcgen05.alloc
// EARLY-NOT: nvvm.cp.async.bulk
// EARLY:     nvvm.griddepcontrol wait
// EARLY:     nvvm.cp.async.bulk.tensor.shared
// EARLY:     nvvm.griddepcontrol launch_dependents

// WAIT:     nvvm.fence.mbarrier.init
// WAIT-NOT: nvvm.cp.async.bulk
// WAIT:     nvvm.griddepcontrol wait
// WAIT-NOT: nvvm.griddepcontrol
// WAIT:     nvvm.cp.async.bulk.tensor.shared
// WAIT-NOT: nvvm.griddepcontrol
// WAIT:     llvm.return

// PLAIN:     nvvm.fence.mbarrier.init
// PLAIN-NOT: nvvm.griddepcontrol
// PLAIN:     llvm.return

// ROLES:     nvvm.griddepcontrol wait
// ROLES:     nvvm.tcgen05.ld
// ROLES-NOT: nvvm.griddepcontrol
// ROLES:     nvvm.cp.async.bulk.tensor.shared
// ROLES:     nvvm.griddepcontrol launch_dependents
// ROLES-NOT: nvvm.griddepcontrol
// ROLES:     nvvm.tcgen05.mma
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

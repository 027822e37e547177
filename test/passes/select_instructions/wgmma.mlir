// On Hopper a group of wgmma stands between its fence and its commit, an MN-major operand says so, and
// results are pinned behind the wait for them. Nothing that stood for tiles and sums is left.
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,swizzle-selection,select-instructions' | filecheck %s

// CHECK-NOT:     nvvm
// CHECK-NOT:     tmem
// CHECK:         "sm.smem_descriptor"{{.*}} -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>
// CHECK:         "sm.smem_descriptor"{{.*}} -> !sm.descriptor<{base_offset = 0 : i64, lbo = 8192 : i64, sbo = 1024 : i64, swizzle = "128B", version = 0 : i64}>
// CHECK:         "sm.tma_load"{{.*}} destination = "cta"
// CHECK:         "sm.wait_barrier"(%{{.*}}, %{{.*}}) {scope = "cta"}
// CHECK:         "sm.wgmma_fence"
// CHECK:         "sm.wgmma"{{.*}} {a_major = "k", a_offset = 0 : i64, a_type = "bf16", b_major = "mn", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", first = 0 : i64, k = 16 : i64, m = 64 : i64, n = 64 : i64}
// CHECK:         "sm.wgmma"{{.*}} {a_major = "k", a_offset = 8192 : i64
// CHECK-COUNT-6: "sm.wgmma"
// CHECK:         "sm.wgmma_commit"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         "sm.pin"
// CHECK-NOT:     unrealized_conversion_cast
// CHECK-NOT:     nvvm
!a = memref<256x320xbf16, 1>
!b = memref<256x320xbf16, strided<[1, 256]>, 1>
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
  %steps = arith.constant 5 : index
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

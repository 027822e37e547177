// Each MMA names its shape, types and majors, and where its K slice starts behind the descriptors, which
// name LBO, SBO and swizzle. The leader CTA issues it for both; its barriers hear of both CTAs' bytes.
// RUN: tilewright opt %s --passes 'tma-insertion,swizzle-selection,clustering{pair=true},warp-specialization,select-instructions' | filecheck %s

// CHECK-NOT: nvvm
// CHECK-NOT: "tile.
// CHECK-NOT: "pipe.
// CHECK:     "sm.kernel"()
// CHECK:     "sm.smem_descriptor"{{.*}} -> !sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, swizzle = "128B", version = 1 : i64}>
// CHECK:     "sm.barrier_init"(%{{.*}}) {count = 1 : i64}
// CHECK:     "sm.fence"() {kind = "mbarrier_init"}
// CHECK:     "sm.cluster_barrier"
// CHECK:     "sm.tmem_alloc"(%{{.*}}) {columns = 64 : i64, cta_group = 2 : i64}
// CHECK:     "sm.named_barrier"() {id = 4 : i64, threads = 160 : i64}
// CHECK:     "sm.await_grids"
// CHECK:     "sm.tmem_load"(%{{.*}}) {offset = 0 : i64, shape = "32x32b"} : (i32) -> vector<32xi32>
// CHECK:     %[[REMOTE:.*]] = "sm.mapa"
// CHECK:     "sm.arrive"(%[[REMOTE]]) {scope = "cta"} : (!llvm.ptr<7>)
// CHECK:     "sm.wait_barrier"(%{{.*}}, %{{.*}}) {scope = "cta"}
// CHECK:     "sm.arrive_expect_tx"(%{{.*}}) {bytes = 40960 : i64}
// CHECK:     %[[LEADER:.*]] = "sm.leader_barrier"
// CHECK:     "sm.tma_load"(%{{.*}}, %arg0, %[[LEADER]], %{{.*}}, %{{.*}}) {cta_group = 2 : i64, destination = "cluster"
// CHECK:     "sm.mma"{{.*}} a_offset = 0 : i64, a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", cta_group = 2 : i64, d_type = "f32", k = 16 : i64, kind = "f16", m = 256 : i64, n = 64 : i64}
// CHECK:     "sm.mma"{{.*}} a_offset = 32 : i64
// CHECK:     "sm.mma"{{.*}} a_offset = 64 : i64
// CHECK:     "sm.mma"{{.*}} a_offset = 96 : i64
// CHECK-NOT: "sm.mma"
// CHECK:     "sm.commit"(%{{.*}}, %{{.*}}) {cta_group = 2 : i64
// CHECK:     "sm.tmem_dealloc"(%{{.*}}) {columns = 64 : i64, cta_group = 2 : i64}
// CHECK-NOT: nvvm
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

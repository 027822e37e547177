// A thread widens half of its row's weights of a step, 16 bytes at a time, into tensor memory. When all
// threads' weights are there, and have met, one lane multiplies them, and commits; the next step's go
// to another place, once the MMAs that read it are done.
// RUN: tilewright opt %s --target sm_100a --passes 'normalize,tiling{tile=128x32x64 mma=tcgen05.mma+cvt swap=true},tma-insertion,swizzle-selection,pipelining{stages=2},select-instructions' | filecheck %s

// CHECK:         "sm.wait_barrier"
// CHECK:         "sm.wait_barrier"
// CHECK:         "sm.fence"() {kind = "tcgen05_after"}
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         arith.subf %{{.*}} : vector<2xbf16>
// CHECK:         "sm.tmem_store"(%{{.*}}) {offset = 0 : i64, shape = "32x32b"} : (i32, vector<8xi32>) -> ()
// CHECK:         "sm.tmem_store"(%{{.*}}) {offset = 0 : i64, shape = "32x32b"} : (i32, vector<8xi32>) -> ()
// CHECK-NEXT:    "sm.tmem_store_wait"()
// CHECK-NEXT:    "sm.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT:    "sm.named_barrier"
// CHECK-NEXT:    "sm.fence"() {kind = "tcgen05_after"}
// CHECK:         scf.if
// CHECK:         "sm.mma_of_tensor_memory"{{.*}} {a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", k = 16 : i64, m = 128 : i64, n = 32 : i64}
// CHECK:         "sm.mma_of_tensor_memory"{{.*}} b_offset = 96 : i64
// CHECK:         "sm.commit"
// CHECK:         "sm.tmem_load"
func.func @f(%a: tensor<32x128xbf16>, %b: tensor<128x128xi8>) -> tensor<32x128xf32> {
  %c = "tile.weight_matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>}
    : (tensor<32x128xbf16>, tensor<128x128xi8>) -> tensor<32x128xf32>
  return %c : tensor<32x128xf32>
}

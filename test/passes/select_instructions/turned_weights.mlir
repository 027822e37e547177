// A warpgroup widens its rows of weights while MMAs run. The pairs of 32 of K are loaded; when the MMAs
// that read these registers a step before are done, they are widened, the next ones are loaded, and
// two MMAs take them from registers, as a group.
// RUN: tilewright opt %s --target sm_90a --passes 'normalize,tiling{tile=64x32x64 mma=wgmma.mma_async+cvt swap=true},tma-insertion,swizzle-selection,pipelining{stages=2},select-instructions' | filecheck %s

// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i16
// CHECK:         "sm.wgmma_wait"() {pending = 1 : i64}
// CHECK:         arith.subf %{{.*}} : vector<2xbf16>
// CHECK:         %[[WORDS:.*]] = vector.from_elements %{{.*}} : vector<4xi32>
// CHECK:         %[[MORE:.*]] = vector.from_elements %{{.*}} : vector<4xi32>
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i16
// CHECK:         "sm.wgmma_fence"
// CHECK:         "sm.wgmma_of_registers"(%{{.*}}, %[[WORDS]], %{{.*}}, %{{.*}}) {a_type = "bf16", b_major = "k", b_offset = 0 : i64, b_type = "bf16", d_type = "f32", k = 16 : i64, m = 64 : i64, n = 32 : i64}
// CHECK:         "sm.wgmma_of_registers"(%{{.*}}, %[[MORE]], {{.*}} b_offset = 32 : i64
// CHECK-NEXT:    "sm.wgmma_commit"
// CHECK-NEXT:    "sm.wgmma_wait"() {pending = 1 : i64}
// CHECK:         "sm.wgmma_of_registers"{{.*}} b_offset = 64 : i64
// CHECK:         "sm.wgmma_of_registers"{{.*}} b_offset = 96 : i64
// CHECK-NEXT:    "sm.wgmma_commit"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         "sm.pin"
func.func @f(%a: tensor<32x128xbf16>, %b: tensor<64x128xi8>) -> tensor<32x64xf32> {
  %c = "tile.weight_matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>}
    : (tensor<32x128xbf16>, tensor<64x128xi8>) -> tensor<32x64xf32>
  return %c : tensor<32x64xf32>
}

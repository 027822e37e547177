// The step before a loop along K does what the loop does in a step 0, but releases no slot: the loop takes it, and skips the release there.
// RUN: tilewright opt %s --target sm_90a --passes 'normalize,tiling{tile=64x128x64},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,select-instructions' | filecheck %s

// CHECK-NOT:     "sm.wgmma"(
// CHECK:         scf.for
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %
// CHECK-NEXT:    %[[ADDS:.*]] = arith.cmpi ne, %[[K]], %
// CHECK:         scf.for
// CHECK:         %[[SUMS:.*]] = arith.ori %[[ADDS]], %
// CHECK:         "sm.wgmma"({{.*}}, %[[SUMS]]
// CHECK:         "sm.wgmma"(
// CHECK-NOT:     "sm.wgmma"(
// CHECK:         "sm.wgmma_wait"() {pending = 2 : i64}
// CHECK:         %[[LATER:.*]] = arith.cmpi ne, %[[K]], %
// CHECK-NEXT:    scf.if %[[LATER]]
// CHECK:         "sm.arrive"
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK-NOT:     "sm.wgmma"(
func.func @f(%a: tensor<64x192xbf16>, %b: tensor<128x192xbf16>) -> tensor<64x128xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %bt = tensor.empty() : tensor<192x128xbf16>
  %turned = linalg.transpose ins(%b : tensor<128x192xbf16>) outs(%bt : tensor<192x128xbf16>) permutation = [1, 0]
  %sums = linalg.matmul ins(%a, %turned : tensor<64x192xbf16>, tensor<192x128xbf16>) outs(%init : tensor<64x128xf32>) -> tensor<64x128xf32>
  %out = tensor.empty() : tensor<64x128xbf16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<64x128xf32>) outs(%out : tensor<64x128xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<64x128xbf16>
  return %c : tensor<64x128xbf16>
}

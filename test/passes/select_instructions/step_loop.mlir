// The MMAs of a step along K in a loop, each turn a group of its own: of two warpgroups that share a
// tile one MMA each, of one alone two. So as many more groups may be pending behind it.
// RUN: tilewright opt %s --target sm_90a --passes 'normalize,tiling{tile=128x256x64},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,select-instructions' | filecheck %s --check-prefixes BOTH,TOGETHER
// RUN: tilewright opt %s --target sm_90a --passes 'normalize,tiling{tile=64x128x64},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,select-instructions' | filecheck %s --check-prefixes BOTH,ALONE

// TOGETHER:      "sm.shuffle_from"
// BOTH-NOT:      "sm.wgmma"(
// BOTH:          "sm.wgmma_fence"
// TOGETHER:      scf.for %[[TURN:[^ ]*]] = %[[FROM:[^ ]*]] to %[[TO:[^ ]*]] step
// ALONE:         scf.for %[[TURN:[^ ]*]] = %[[FROM:[^ ]*]] to %[[TO:[^ ]*]] step
// BOTH:          %[[LATER:.*]] = arith.cmpi ne, %[[TURN]], %
// BOTH:          %[[ADDS:.*]] = arith.ori %{{.*}}, %[[LATER]]
// TOGETHER:      %[[UNITS:.*]] = arith.constant 2 : i32
// ALONE:         %[[UNITS:.*]] = arith.constant 4 : i32
// BOTH:          arith.muli %[[TURN]], %[[UNITS]]
// BOTH:          %[[HELD:.*]] = llvm.load %[[SLOT:.*]] : !llvm.ptr
// BOTH:          %[[SUM:.*]] = "sm.wgmma"(%[[HELD]], %{{.*}}, %{{.*}}, %[[ADDS]]) {{{.*}}a_offset = 0 : i64
// BOTH:          llvm.store %[[SUM]], %[[SLOT]]
// ALONE:         "sm.wgmma"({{.*}}) {{{.*}}a_offset = 32 : i64
// BOTH-NOT:      "sm.wgmma"(
// BOTH:          "sm.wgmma_commit"
// BOTH-NEXT:     } {loop_annotation
// TOGETHER:      "sm.wgmma_wait"() {pending = 4 : i64}
// ALONE:         "sm.wgmma_wait"() {pending = 2 : i64}
// BOTH:          "sm.wgmma_wait"() {pending = 0 : i64}
func.func @f(%a: tensor<128x192xbf16>, %b: tensor<256x192xbf16>) -> tensor<128x256xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x256xf32>) -> tensor<128x256xf32>
  %bt = tensor.empty() : tensor<192x256xbf16>
  %turned = linalg.transpose ins(%b : tensor<256x192xbf16>) outs(%bt : tensor<192x256xbf16>) permutation = [1, 0]
  %sums = linalg.matmul ins(%a, %turned : tensor<128x192xbf16>, tensor<192x256xbf16>) outs(%init : tensor<128x256xf32>) -> tensor<128x256xf32>
  %out = tensor.empty() : tensor<128x256xbf16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<128x256xf32>) outs(%out : tensor<128x256xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<128x256xbf16>
  return %c : tensor<128x256xbf16>
}

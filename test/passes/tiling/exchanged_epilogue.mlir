// What an epilogue reads is said of the transpose of C, as the sums are: of a bias one element a row.
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=64x24x64 swap=true}' | filecheck %s
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=64x24x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging{ahead=2}' | filecheck %s --check-prefix AHEAD

// CHECK:     ^bb0(%[[A:.*]]: memref<75x136xbf16, 1>, %[[B:.*]]: memref<200x136xbf16, 1>, %[[BIAS:.*]]: memref<200xf32, 1>, %[[R:.*]]: memref<75x200xbf16, 1>, %[[C:.*]]: memref<75x200xbf16, 1>):
// CHECK:       %[[TURNED:.*]] = "tile.transposed"(%[[R]]) : (memref<75x200xbf16, 1>) -> memref<200x75xbf16, strided<[1, 200]>, 1>
// CHECK:       "tile.store"
// CHECK:         "tile.element"(%[[BIAS]]) {axes = "m"}
// CHECK:         "tile.element"(%[[TURNED]]) {axes = "mn"}

// AHEAD:       "tile.tensor_map"(%{{.*}}) : (memref<75x200xbf16, 1>) -> !tile.map<bf16, [200, 75], [400], [64, 24], "128B">
// AHEAD:       "pipe.create"() : () -> !pipe.ring<2 : i64, [!tile.smem<tensor<64x24xbf16>, "mn", "128B">]>
// AHEAD:       "tile.load_ahead"
// AHEAD:         "tile.staged_element"({{.*}}) {axes = "mn"}
func.func @f(%a: tensor<75x136xbf16>, %b: tensor<200x136xbf16>, %bias: tensor<200xf32>, %r: tensor<75x200xbf16>) -> tensor<75x200xbf16> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {axes = "n"} : (tensor<200xf32>) -> f32
    %y = arith.addf %x, %e : f32
    %g = "tile.element"(%r) {axes = "mn"} : (tensor<75x200xbf16>) -> bf16
    %w = arith.extf %g : bf16 to f32
    %z = arith.subf %w, %y : f32
    %t = arith.truncf %z : f32 to bf16
    "tile.yield"(%t) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<75x136xbf16>, tensor<200x136xbf16>) -> tensor<75x200xbf16>
  return %c : tensor<75x200xbf16>
}

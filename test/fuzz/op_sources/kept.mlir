func.func @f(%a: tensor<256x64xbf16>, %b: tensor<256x64xbf16>) -> (tensor<256x256xbf16>, tensor<256x8xf32>) {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %t = arith.truncf %x : f32 to bf16
    "tile.keep_groups"(%x) {group = 32 : i64, reduce = "amax"} : (f32) -> ()
    "tile.yield"(%t) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<256x64xbf16>, tensor<256x64xbf16>) -> tensor<256x256xbf16>
  %d = "tile.kept"(%c) {number = 0 : i64} : (tensor<256x256xbf16>) -> tensor<256x8xf32>
  return %c, %d : tensor<256x256xbf16>, tensor<256x8xf32>
}

// A tile whose accumulator is more than 128 registers a thread is shared by two warpgroups, or three.
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=128x128x64}' | filecheck %s --check-prefix ONE
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=128x136x64}' | filecheck %s --check-prefix TWO
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=256x160x64}' | filecheck %s --check-prefix TWO
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=192x144x64}' | filecheck %s --check-prefix THREE
// RUN: tilewright opt %s --passes 'tiling{tile=128x256x64}' | filecheck %s --check-prefix ONE

// ONE: threads = 128 : i64
// TWO: threads = 256 : i64
// THREE: threads = 384 : i64
func.func @f(%a: tensor<300x136xbf16>, %b: tensor<136x520xbf16>) -> tensor<300x520xf32> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "mn"} : (tensor<300x136xbf16>, tensor<136x520xbf16>) -> tensor<300x520xf32>
  return %c : tensor<300x520xf32>
}

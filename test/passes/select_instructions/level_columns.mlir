// A wgmma's columns are a part of the instruction: by the rows that a tile has, up to the next multiple of 32, it takes one of three
// loops along K, whose MMAs are as wide. Behind each the sums are copied, so that each has registers of its own.
// RUN: tilewright opt %s --target sm_90a --passes 'tiling{tile=64x128x64 swap=true},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,level-groups{unit=32},select-instructions' | filecheck %s

// CHECK:         %[[LEAST:.*]] = arith.constant 65 : i32
// CHECK-NEXT:    %[[FITS:.*]] = arith.cmpi ult, %[[ROWS:.*]], %[[LEAST]]
// CHECK-NEXT:    scf.if %[[FITS]]
// CHECK-COUNT-4: "sm.wgmma"({{.*}} n = 64 : i64
// CHECK:         scf.for
// CHECK-COUNT-4: "sm.wgmma"({{.*}} n = 64 : i64
// CHECK:         "sm.wgmma_wait"() {pending = 0 : i64}
// CHECK:         "sm.pin"
// CHECK:         "sm.keep"(%{{.*}}) : (vector<32xi32>) -> vector<32xi32>
// CHECK-NOT:     n = 64 : i64
// CHECK:         %[[NEXT:.*]] = arith.constant 97 : i32
// CHECK-NEXT:    %[[FITS:.*]] = arith.cmpi ult, %[[ROWS]], %[[NEXT]]
// CHECK-NEXT:    scf.if %[[FITS]]
// CHECK-COUNT-4: "sm.wgmma"({{.*}} n = 96 : i64
// CHECK:         scf.for
// CHECK-COUNT-4: "sm.wgmma"({{.*}} n = 96 : i64
// CHECK-NOT:     n = 96 : i64
// CHECK-COUNT-8: "sm.wgmma"({{.*}} n = 128 : i64
// CHECK-NOT:     "sm.wgmma"(
func.func @f(%a: tensor<300x192xbf16>, %b: tensor<3x200x192xbf16>, %ends: tensor<3xi32>) -> tensor<300x200xbf16> {
  %c = "tile.grouped_matmul"(%a, %b, %ends) ({
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    "tile.yield"(%y) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<300x192xbf16>, tensor<3x200x192xbf16>, tensor<3xi32>) -> tensor<300x200xbf16>
  return %c : tensor<300x200xbf16>
}

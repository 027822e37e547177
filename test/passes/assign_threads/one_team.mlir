// One lane fills slots, the leader CTA's lane of a pair empties them and issues MMAs; in a loop with
// both, the issuer's region stands in the lane's. The store is for all threads, and lanes meet before it.
// A thread's numbers come first, in a kernel where all threads run everything, too.
// RUN: tilewright opt %s --passes 'tma-insertion,clustering{pair=true},assign-threads' | filecheck %s --check-prefix=PAIR
// RUN: tilewright opt %s --target sm_90a --passes 'tma-insertion,assign-threads' | filecheck %s --check-prefix=TEAM
// RUN: tilewright opt %s --passes 'assign-threads' | filecheck %s --check-prefix=COPIES

// PAIR:      ^bb0
// PAIR-NEXT: %{{.*}}:3 = "sm.team"() : () -> (i32, i32, i1)
// PAIR:      "sm.run"() ({
// PAIR-NEXT:   scf.for
// PAIR:          "pipe.acquire"
// PAIR-COUNT-2:  "tile.tma_load"
// PAIR:          "pipe.commit"
// PAIR-NOT:      }) {by
// PAIR:          "sm.run"() ({
// PAIR-NEXT:       "pipe.wait"
// PAIR:            "tile.pair_mma"
// PAIR-NEXT:       "pipe.release"
// PAIR-NEXT:     }) {by = "issuer"}
// PAIR-NOT:      "sm.converge"
// PAIR:      }) {by = "lane"}
// PAIR-NEXT: "sm.converge"
// PAIR-NEXT: "tile.store"
// PAIR-NOT:  "sm.

// TEAM:      scf.for
// TEAM:        "sm.run"() ({
// TEAM-NEXT:     "pipe.acquire"
// TEAM:          "pipe.commit"
// TEAM-NEXT:   }) {by = "lane"}
// TEAM-NEXT:   "sm.converge"
// TEAM-NEXT:   "pipe.wait"
// TEAM:        "tile.mma"
// TEAM-NOT:  "sm.

// COPIES:      "sm.team"
// COPIES-NOT:  "sm.
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

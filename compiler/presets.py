"""Published kernels as pipelines: each adds one pass or option to the one before.

`v1a` to `v6` are the steps of "tcgen05 for dummies" (gau-nernst), `kernel2` to `kernel8` those of
"Matrix Multiplication on Blackwell" (Modular, parts 2 and 3, and the persistent kernel that part 3
announces). Tile shapes and stage counts are theirs where the text states them. `h1` to `h7` are the
same steps for Hopper, with tiles that wgmma accumulators in registers allow; `h8` has consumers
that alternate. `puzzle-naive` to `puzzle-async` are the steps of "Matrix Multiplication (MatMul)"
(Modular, Mojo GPU puzzles), with its blocks of 3x3 threads; `puzzle-registers` goes on from there.
`s1` to `s5` are steps of a kernel of mma.sync, for chips without TMA and any others. `v0` is that
of gau-nernst's repository.
"""

from __future__ import annotations

_V3 = "tiling{tile=128x256x64},tma-insertion{box=2d},swizzle-selection"
_V5 = (
    "tiling{tile=128x256x64},tma-insertion{box=2d},swizzle-selection,"
    "clustering{shape=2x1 pair=true},pipelining{stages=6},warp-specialization"
)
_MATRICES = "expand-loops{reads=matrices}"
_KERNEL3 = "tiling{tile=64x64x64},tma-insertion{box=2d},swizzle-selection"
_KERNEL5 = "tiling{tile=128x256x64},tma-insertion{box=2d},swizzle-selection"
_KERNEL7 = (
    f"{_KERNEL5},epilogue-staging{{columns=32 buffers=2}},clustering{{shape=2x1 pair=true}},"
    "pipelining{stages=6},warp-specialization"
)

PRESETS = {
    "v1a": "tiling{tile=128x128x64},tma-insertion{box=2d}",
    "v1b": "tiling{tile=128x128x64},tma-insertion{box=3d}",
    "v2a": "tiling{tile=128x128x128},tma-insertion{box=2d},swizzle-selection",
    "v2b": "tiling{tile=128x128x128},tma-insertion{box=3d},swizzle-selection",
    "v3": f"{_V3},pipelining{{stages=4}}",
    "v4": f"{_V3},pipelining{{stages=4}},warp-specialization",
    "v5": _V5,
    "v6": f"{_V5},persistence{{scheduler=static}}",
    "kernel2": f"tiling{{tile=64x64x64}},tma-insertion{{box=2d}},{_MATRICES}",
    "kernel3": f"{_KERNEL3},{_MATRICES}",
    "kernel4": f"{_KERNEL3},epilogue-staging{{buffers=1}}",
    "kernel5": f"{_KERNEL5},epilogue-staging{{buffers=4}},clustering{{shape=2x2 pair=true}}",
    "kernel6": (
        f"{_KERNEL5},epilogue-staging{{buffers=4}},clustering{{shape=2x1 pair=true}},"
        "pipelining{stages=5},warp-specialization"
    ),
    "kernel7": _KERNEL7,
    "kernel8": f"{_KERNEL7},persistence{{scheduler=clc}}",
}

_H3 = "tiling{tile=128x128x64},tma-insertion{box=2d},swizzle-selection"
_WIDE = "tiling{tile=128x256x64},tma-insertion{box=2d},swizzle-selection"
_H_ROLES = "pipelining{stages=4},warp-specialization"
_H_TILES = "persistence{scheduler=static order=grouped group=8}"
_H_END = f"{_H_ROLES},{_H_TILES}"

HOPPER_PRESETS = {
    "h1": "tiling{tile=128x128x64}",
    "h2": "tiling{tile=128x128x64},tma-insertion{box=2d}",
    "h3": _H3,
    "h4": f"{_H3},pipelining{{stages=4}}",
    "h5": f"{_WIDE},{_H_ROLES}",
    "h6": f"{_WIDE},epilogue-staging{{buffers=2}},{_H_END}",
    "h7": f"{_WIDE},epilogue-staging{{buffers=2}},clustering{{shape=2x1}},{_H_END}",
    "h8": (
        f"{_H3},epilogue-staging{{columns=32 buffers=4}},pipelining{{stages=5}},"
        f"warp-specialization,{_H_TILES},ping-pong"
    ),
}
_S1 = "tiling{tile=128x128x32 mma=mma.sync}"
_S3 = f"{_S1},copy-insertion,swizzle-selection"

# Each warp multiplies by itself.
WARP_PRESETS = {
    "s1": _S1,
    "s2": f"{_S1},copy-insertion",
    "s3": _S3,
    "s4": f"{_S3},pipelining{{stages=4}}",
    "s5": (
        "tiling{tile=128x256x32 mma=mma.sync},copy-insertion,swizzle-selection,pipelining{stages=3}"
    ),
    "v0": (
        "tiling{tile=128x128x64 mma=mma.sync warps=2x2},copy-insertion,swizzle-selection,"
        "pipelining{stages=2}"
    ),
}
_NAIVE = "mma=fma operands=global"
_REGISTERS = "tiling{tile=64x64x16 mma=fma threads=64},copy-insertion,swizzle-selection"

# For any chip: each thread multiplies by itself.
THREAD_PRESETS = {
    "puzzle-naive": f"tiling{{tile=3x3x1 {_NAIVE}}}",
    "puzzle-shared": "tiling{tile=3x3x1 mma=fma operands=whole}",
    "puzzle-tiled": "tiling{tile=3x3x3 mma=fma}",
    "puzzle-async": "tiling{tile=3x3x3 mma=fma},copy-insertion,pipelining{stages=2}",
    "puzzle-registers": f"{_REGISTERS},pipelining{{stages=2}}",
    "kernel1": f"tiling{{tile=16x16x1 {_NAIVE}}}",
}
PRESETS_OF: dict[str, dict[str, str]] = {
    "sm_100a": PRESETS,
    "sm_90a": HOPPER_PRESETS,
    **dict.fromkeys(("sm_80", "sm_86", "sm_89", "sm_120a"), WARP_PRESETS),
}

"""What passes refuse because a chip lacks it, one row each, whole message compared."""

import pytest
from refused_pipelines import ROLES, TMA, message_of, tile

from tilewright.compiler.spec import MatmulSpec


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "tiling{tile=256x256x64}",
            "tile.matmul: tile 256x256 needs more than the accumulator registers of a thread (128 "
            "in 1, 160 in 2, 96 in 3 warpgroups) of sm_90a; make the tile smaller",
        ),
        (
            "tiling{tile=192x200x64}",
            "tile.matmul: tile 192x200 needs more than the accumulator registers of a thread (128 "
            "in 1, 160 in 2, 96 in 3 warpgroups) of sm_90a; make the tile smaller",
        ),
        (
            f"{tile('128x256x64')},pipelining{{stages=5}}",
            "pipe.create: pipelining: 5 stages of 49152 bytes are 245760 bytes, over the 231424 "
            "that sm_90a has left; use stages=4 or fewer",
        ),
        (
            f"{TMA},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: sm_90a has no 2-CTA MMAs; drop pair=true",
        ),
        (
            f"{ROLES},persistence{{scheduler=clc}}",
            "tile.kernel: persistence: sm_90a has no cluster launch control, got scheduler=clc; "
            "use scheduler=static",
        ),
    ],
)
def test_what_a_target_lacks_is_refused_by_its_name(pipeline, message):
    assert message_of(pipeline, target="sm_90a") == f"error: {message}"


@pytest.mark.parametrize(
    ("mma", "name", "spec"),
    [
        (" mma=mma.sync", "mma.sync", None),
        ("", "mma.sync+bf16x9", MatmulSpec(64, 64, 128, *["bf16x9"] * 2, "f32")),
    ],
)
def test_an_mma_without_pairs_is_told_from_a_chip_without_them(mma, name, spec):
    pipeline = f"tiling{{tile=64x64x32{mma}}},tma-insertion,clustering{{shape=2x1 pair=true}}"
    rule = f"clustering: only tcgen05.mma is of two CTAs, got {name}"
    assert message_of(pipeline, spec) == f"error: tile.mma: {rule}; drop pair=true"


COPIES = "tiling{tile=64x64x32},copy-insertion"
HAVE = "sm_100a, sm_90a or sm_120a"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "tiling,tma-insertion",
            f"tile.kernel: tma-insertion: sm_80 has no TMA, which {HAVE} have; use copy-insertion",
        ),
        (
            "tiling,pipelining",
            "tile.kernel: pipelining: operands must come through a pipe; run copy-insertion first",
        ),
        (
            "tiling{tile=8x8x4 mma=fma operands=global},copy-insertion",
            "tile.kernel: copy-insertion: operands must be loaded as tiles, got MMAs that read "
            "global memory themselves; tile without operands=global",
        ),
        (
            "tiling{tile=8x8x4 mma=fma operands=global},clustering{shape=2x1}",
            "tile.kernel: clustering: threads read operands from global memory as they multiply; "
            "drop clustering",
        ),
        (
            f"{COPIES},warp-specialization",
            "tile.kernel: warp-specialization: roles wait for each other at mbarriers, which "
            f"{HAVE} can, got sm_80; leave it out",
        ),
        (
            f"{COPIES},persistence{{scheduler=clc}}",
            "tile.kernel: persistence: sm_80 has no cluster launch control, got scheduler=clc; "
            "use scheduler=static",
        ),
        (
            f"{COPIES},split-k{{parts=2}}",
            "tile.kernel: split-k: a cluster of sm_80 has at most 1 CTA, got 1x1 in 2 parts = 2; "
            "take over=grid",
        ),
        (
            f"{COPIES},lower-to-nvvm{{pdl=true}}",
            f"sm.kernel: lower-to-nvvm: sm_80 has no griddepcontrol, which {HAVE} have; "
            "use pdl=false, not true",
        ),
        (
            f"{COPIES},epilogue-staging{{write=matrices}}",
            f"tile.store: epilogue-staging: stmatrix is for {HAVE}, got sm_80; use write=rows",
        ),
        (
            "tiling{tile=64x64x32 group=4}",
            "tile.matmul: tiling: group is for order=grouped, got order=m",
        ),
        (
            "tiling{tile=64x64x32 order=grouped},persistence",
            "tile.kernel: persistence: CTAs have an order already; leave out that of tiling",
        ),
        (
            "tiling{tile=64x64x32 warps=3x1}",
            "tile.matmul: tiling: each of up to 16 warps must have whole 16x8 of a 64x64 tile and "
            "up to 128 registers of sums, got 3x1 warps; leave out warps",
        ),
    ],
)
def test_what_a_chip_without_tma_and_clusters_cannot_do(pipeline, message):
    assert message_of(pipeline, target="sm_80") == f"error: {message}"


def test_a_type_that_the_chips_mma_does_not_take_names_chips_that_do():
    spec = MatmulSpec(64, 64, 64, "e4m3", "e4m3")
    expected = (
        "mma.sync of sm_86 takes no e4m3, which sm_100a, sm_90a, sm_89 or sm_120a take; "
        "compile for one of them, or convert A and B"
    )
    assert message_of("tiling", spec, "sm_86") == f"error: tile.matmul: tiling: {expected}"

"""Tiles of a group that are equally high: MMAs as wide, boxes as many as they need."""

import pytest

from tilewright.compiler.spec import MatmulSpec

LEVEL = (
    "tiling{{tile={tile} swap=true}},tma-insertion,swizzle-selection,"
    "epilogue-staging{{columns=32 buffers=2}},pipelining{{stages=3}},warp-specialization,"
    "persistence{{order=grouped group=8 ctas=3}},level-groups{{{level}}}"
)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("tile", "level", "shape"),
    [
        ("128x256x64", "unit=16 box=32", (600, 136, 136, 4)),
        ("256x128x64", "unit=8 box=32", (400, 264, 136, 3)),
        ("256x128x64", "unit=8 box=32", (130, 520, 64, 3)),
        ("128x128x64", "unit=16", (300, 136, 136, 7)),
    ],
)
def test_tiles_of_a_group_are_equally_high(check_matmul, tile, level, shape):
    m, n, k, groups = shape
    pipeline = LEVEL.format(tile=tile, level=level)
    compiled, _ = check_matmul(
        MatmulSpec(m, n, k, groups=groups), target="sm_90a", pipeline=pipeline
    )
    assert not compiled.assembled.serialized

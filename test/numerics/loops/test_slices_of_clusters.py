"""Clusters whose CTAs load slices of a tile that begin within a swizzle's pattern."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

TEXT = (
    "tiling{tile=TILE},tma-insertion,swizzle-selection{force=SWIZZLE},"
    "clustering{shape=SHAPE pair=false},pipelining{stages=3},warp-specialization"
)


def text(tile, shape, swizzle="128B"):
    return TEXT.replace("TILE", tile).replace("SHAPE", shape).replace("SWIZZLE", swizzle)


def slices(compiled):
    """Rows of a box of A, and of B."""
    a, b = (each for each in compiled.manifest["parameters"] if each["tensor"] in "ab")
    return a["box"][1], b["box"][1]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("tile", ["64x40x64", "64x24x128", "128x48x64"])
@pytest.mark.parametrize(("shape", "parts"), [("2x1", 2), ("4x1", 4), ("8x1", 8), ("4x2", 4)])
def test_columns_go_in_parts_of_any_rows(check_matmul, target, tile, shape, parts):
    """Of 40 columns 20, 10 or 5 rows a CTA, where the pattern has 8; M and N are ragged."""
    m, n, _ = (int(size) for size in tile.split("x"))
    spec = MatmulSpec(parts * m - 20, 2 * n - 8, 200)
    compiled, _ = check_matmul(spec, pipeline=text(tile, shape), target=target, seed=parts)
    assert slices(compiled)[1] == n // parts


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("swizzle", "parts", "rows"), [("128B", 8, 3), ("64B", 4, 6), ("32B", 2, 12), ("none", 2, 24)]
)
def test_parts_begin_where_tma_may_write(check_matmul, target, swizzle, parts, rows):
    """Rows of 64 bytes go by 2, of 32 by 4, of 16 by 8: 12 rows of those are no part."""
    spec = MatmulSpec(64 * parts, 24, 136)
    pipeline = text("64x24x64", f"{parts}x1", swizzle)
    compiled, _ = check_matmul(spec, pipeline=pipeline, target=target, seed=rows)
    assert slices(compiled)[1] == rows

"""Operands with fewer rows than a tile: TMA copies the rows that there are, the others are zero."""

import pytest

from tilewright.compiler.spec import MatmulSpec

KINDS = {
    "one-slot": "tiling{tile=TILE},tma-insertion{box=3d}",
    "roles": (
        "tiling{tile=TILE},tma-insertion{box=3d},swizzle-selection,pipelining{stages=3},"
        "warp-specialization"
    ),
    "persistent": (
        "tiling{tile=TILE},tma-insertion,swizzle-selection,pipelining{stages=2},"
        "warp-specialization,persistence{ctas=2}"
    ),
    "multicast": (
        "tiling{tile=TILE},tma-insertion,swizzle-selection,clustering{shape=2x2 pair=false},"
        "pipelining{stages=2},warp-specialization"
    ),
}
PAIR = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},"
    "pipelining{stages=2},warp-specialization"
)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), [(1, 200), (16, 40), (200, 7)])
@pytest.mark.parametrize("tile", ["64x64x64", "128x48x128"])
def test_rows_that_are_missing_are_zero(check_matmul, target, kind, m, n, tile):
    pipeline = KINDS[kind].replace("TILE", tile)
    compiled, _ = check_matmul(MatmulSpec(m, n, 328), pipeline=pipeline, target=target)
    a, b = (each for each in compiled.manifest["parameters"] if each["tensor"] in "ab")
    if kind != "multicast":
        rows = [int(size) for size in tile.split("x")]
        assert [a["box"][1], b["box"][1]] == [min(m, rows[0]), min(n, rows[1])]


@pytest.mark.parametrize(("m", "n"), [(1, 200), (200, 7), (16, 40)])
def test_a_pair_reads_the_zeros_of_both(check_matmul, m, n):
    check_matmul(MatmulSpec(m, n, 328), pipeline=PAIR, target="sm_100a", seed=1)


def test_rows_along_k_are_copied_whole(check_matmul):
    spec = MatmulSpec(16, 200, 40, a_major="m", b_major="n")
    compiled, _ = check_matmul(spec, pipeline=KINDS["roles"].replace("TILE", "64x64x64"))
    maps = [each for each in compiled.manifest["parameters"] if each["tensor"] in "ab"]
    assert [each["box"][1] for each in maps] == [64, 64]

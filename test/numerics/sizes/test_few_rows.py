"""Operands with fewer rows than a tile: TMA copies the rows that there are, the others are zero."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

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
TMA = "tiling{tile=64x64x64},tma-insertion,swizzle-selection"
ROLES = f"{TMA},pipelining{{stages=3}},warp-specialization"
SPLIT = f"{TMA},split-k{{parts=2}},pipelining{{stages=3}},warp-specialization"
PAIR = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},"
    "pipelining{stages=2},warp-specialization"
)


@pytest.mark.sweep(4)
@pytest.mark.array(
    kind=KINDS,
    size=[(1, 200), (16, 40), (200, 7)],
    target=["sm_90a", "sm_100a"],
    tile=["64x64x64", "128x48x64"],
)
def test_rows_that_are_missing_are_zero(check_matmul, target, kind, size, tile):
    m, n = size
    pipeline = KINDS[kind].replace("TILE", tile)
    compiled, _ = check_matmul(MatmulSpec(m, n, 200), pipeline=pipeline, target=target)
    a, b = (each for each in compiled.manifest["parameters"] if each["tensor"] in "ab")
    if kind != "multicast":
        rows = [int(size) for size in tile.split("x")]
        assert [a["box"][1], b["box"][1]] == [min(m, rows[0]), min(n, rows[1])]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("m", "n"), [(1, 200), (200, 7), (16, 40)])
def test_a_pair_reads_the_zeros_of_both(check_matmul, m, n):
    check_matmul(MatmulSpec(m, n, 200), pipeline=PAIR, target="sm_100a", seed=1)


@pytest.mark.sweep(32)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("pipeline", [ROLES, SPLIT], ids=["roles", "split"])
@pytest.mark.parametrize("rows", [1, 8, 9, 16, 33, 63])
@pytest.mark.parametrize("operand", ["a", "b"])
def test_every_count_of_rows(check_matmul, target, pipeline, rows, operand):
    m, n = (rows, 136) if operand == "a" else (72, rows)
    compiled, _ = check_matmul(MatmulSpec(m, n, 200), pipeline=pipeline, target=target, seed=2)
    a, b = (each for each in compiled.manifest["parameters"] if each["tensor"] in "ab")
    assert [a["box"][1], b["box"][1]] == [min(m, 64), min(n, 64)]


@pytest.mark.array(1, swizzle=["none", "32B", "64B", "128B"], target=["sm_90a", "sm_100a"])
def test_zeros_stay_in_their_rows_in_every_swizzle(check_matmul, target, swizzle):
    head = f"tiling{{tile=64x32x64}},tma-insertion,swizzle-selection{{force={swizzle}}}"
    pipeline = f"{head},pipelining{{stages=3}},warp-specialization"
    check_matmul(MatmulSpec(17, 9, 200), pipeline=pipeline, target=target, seed=3)


@pytest.mark.sweep(16)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("shape", ["1x2", "2x1"])
@pytest.mark.parametrize(("m", "n"), [(9, 136), (33, 136), (136, 16), (136, 63), (8, 1)])
def test_one_operand_is_multicast_and_the_other_has_few_rows(check_matmul, target, shape, m, n):
    pipeline = f"{TMA},clustering{{shape={shape} pair=false}},pipelining{{stages=2}}"
    check_matmul(MatmulSpec(m, n, 200), pipeline=pipeline, target=target, seed=4)


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("m", "n"), [(9, 136), (136, 16), (264, 63), (8, 1), (63, 33)])
@pytest.mark.parametrize("shape", ["4x1", "2x2"])
def test_pairs_that_multicast_read_zeros(check_matmul, shape, m, n):
    pipeline = PAIR.replace("shape=2x1", f"shape={shape}")
    check_matmul(MatmulSpec(m, n, 200), pipeline=pipeline, target="sm_100a", seed=5)


def test_rows_along_k_are_copied_whole(check_matmul):
    spec = MatmulSpec(16, 200, 40, a_major="m", b_major="n")
    compiled, _ = check_matmul(spec, pipeline=KINDS["roles"].replace("TILE", "64x64x64"))
    maps = [each for each in compiled.manifest["parameters"] if each["tensor"] in "ab"]
    assert [each["box"][1] for each in maps] == [64, 64]
